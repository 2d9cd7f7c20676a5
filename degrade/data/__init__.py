"""Bytes and files: readers, writers, manifests, staging. Knows no operator."""
