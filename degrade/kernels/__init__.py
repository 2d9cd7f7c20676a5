"""Pixel machinery that knows neither operators nor intensity."""
