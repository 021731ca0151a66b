"""Exports of nsys as typed polars frames."""
