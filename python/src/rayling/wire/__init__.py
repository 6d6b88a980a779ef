"""Frames and values between Python and Node; the other side is `packages/rayling/src/python/wire`."""
