"""The pages: what was kept and why, what is stuck, what other thresholds would do. One ASGI app for every host.

Everything is readable without script, nothing is loaded from elsewhere, and a GET changes nothing.
"""
