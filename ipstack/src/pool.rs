//! A bounded pool that parks bytes which a short write left over.
