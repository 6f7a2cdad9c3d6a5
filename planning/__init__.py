"""What an environment costs, told before it is brought up; nothing here talks to a cloud."""
