"""Generators of documents, queries and messages to try and to measure with, the same for a seed."""

from tamis.model.dtd import Dtd
from tamis.workload.documents import DocumentOptions, generate_documents
from tamis.workload.profile import Profile
from tamis.workload.queries import Mix, QueryOptions, generate_queries
from tamis.workload.stock import StockOptions, stock_messages, stock_subscriptions
from tamis.workload.transformations import TransformationOptions, generate_transformations

__all__ = [
    "DocumentOptions",
    "Dtd",
    "Mix",
    "Profile",
    "QueryOptions",
    "StockOptions",
    "TransformationOptions",
    "generate_documents",
    "generate_queries",
    "generate_transformations",
    "stock_messages",
    "stock_subscriptions",
]
