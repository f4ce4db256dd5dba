"""Generators of documents, queries and messages to try and to measure with, the same for a seed."""

from tamis.dtd import Dtd
from tamis.workload.documents import DocumentOptions, generate_documents
from tamis.workload.profile import Profile
from tamis.workload.queries import Mix, QueryOptions, generate_queries
from tamis.workload.stock import StockOptions, stock_messages, stock_subscriptions

__all__ = [
    "DocumentOptions",
    "Dtd",
    "Mix",
    "Profile",
    "QueryOptions",
    "StockOptions",
    "generate_documents",
    "generate_queries",
    "stock_messages",
    "stock_subscriptions",
]
