"""Queues of asynchronous tasks: Celery over Redis, SQS or Service Bus, behind one protocol.

Celery is slow to import, so it is only where tasks are sent or worked on: take ``base`` for names
and types, and ``make`` for a broker.
"""
