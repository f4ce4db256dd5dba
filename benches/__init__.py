"""Measurements that `make bench` runs: workloads as data, and what measures them."""
