"""The outside world behind the ports. Each adapter hides one thing."""
