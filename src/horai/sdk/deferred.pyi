from horai.sdk import composition as composition
from horai.sdk import runtime as runtime
from horai.sdk import workflow as workflow
