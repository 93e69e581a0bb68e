"""Layers that encoders and decoders are built from."""
