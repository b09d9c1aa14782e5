"""What every request of a program goes through, so that no view can forget it: put together in settings.py."""
