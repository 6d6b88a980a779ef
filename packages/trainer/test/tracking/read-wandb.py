"""What wandb's own client reads in a transaction log, as a line of JSON for each record."""

import sys

from google.protobuf.json_format import MessageToJson
from wandb.proto import wandb_internal_pb2
from wandb.sdk.internal.datastore import DataStore

store = DataStore()
store.open_for_scan(sys.argv[1])
while (data := store.scan_data()) is not None:
    record = wandb_internal_pb2.Record()
    record.ParseFromString(data)
    print(MessageToJson(record, indent=None, preserving_proto_field_name=True))
