"""Tests; a package, so that its helpers (laws, images, fake accelerator, OpenCV references) can be imported."""
