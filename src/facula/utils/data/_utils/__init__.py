"""What a loader is made of."""

MP_STATUS_CHECK_INTERVAL = 5.0  # seconds that workers get to end by themselves
