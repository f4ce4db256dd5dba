"""Tests of the network of brokers."""
