"""AWS and servers that speak its protocols: DynamoDB, S3, SQS."""
