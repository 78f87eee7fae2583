"""Kafka, Redis Streams and NATS JetStream: read messages and learn from each exactly once."""
