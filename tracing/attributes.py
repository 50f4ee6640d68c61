"""Names of span attributes, in one place because the conventions still move.

Sources: OpenTelemetry semantic conventions for generative AI and for messaging, both in
development, https://opentelemetry.io/docs/specs/semconv/. Ours begin with ``cadenza.``.
"""

# Generative AI
OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
REQUEST_MODEL = "gen_ai.request.model"
RESPONSE_MODEL = "gen_ai.response.model"
FINISH_REASONS = "gen_ai.response.finish_reasons"
AGENT = "gen_ai.agent.name"
WORKFLOW = "gen_ai.workflow.name"
CONVERSATION = "gen_ai.conversation.id"
TOOL = "gen_ai.tool.name"
TOOL_CALL_ID = "gen_ai.tool.call.id"
TOOL_ARGUMENTS = "gen_ai.tool.call.arguments"
TOOL_RESULT = "gen_ai.tool.call.result"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
CACHED_TOKENS = "gen_ai.usage.cache_read.input_tokens"
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
ERROR_TYPE = "error.type"

# Messaging
SYSTEM = "messaging.system"
DESTINATION = "messaging.destination.name"
OPERATION_TYPE = "messaging.operation.type"
OPERATION_NAME = "messaging.operation.name"
MESSAGE_ID = "messaging.message.id"
CONSUMER_GROUP = "messaging.consumer.group.name"

# Ours; roll-ups never stand under gen_ai.usage, or sums over a trace would count them twice.
RUN = "cadenza.run"
MODE = "cadenza.mode"
PIPELINE = "cadenza.pipeline"
SUBTASK = "cadenza.subtask"
ATTEMPT = "cadenza.attempt"
STATUS = "cadenza.status"
STOP_REASON = "cadenza.stop_reason"
ITERATIONS = "cadenza.iterations"
NO_PROGRESS = "cadenza.no_progress"
COST_USD = "cadenza.cost_usd"
TOTAL_COST_USD = "cadenza.total.cost_usd"
TOTAL_INPUT_TOKENS = "cadenza.total.input_tokens"
TOTAL_OUTPUT_TOKENS = "cadenza.total.output_tokens"
TOTAL_LLM_CALLS = "cadenza.total.llm_calls"
TOTAL_TOOL_CALLS = "cadenza.total.tool_calls"
TOOL_STATUS = "cadenza.tool.status"
LINK = "cadenza.link"

# Values of OPERATION
INVOKE_WORKFLOW = "invoke_workflow"
PLAN = "plan"
INVOKE_AGENT = "invoke_agent"
CHAT = "chat"
EXECUTE_TOOL = "execute_tool"

# Values of OPERATION_TYPE and OPERATION_NAME
SEND = "send"
PROCESS = "process"

# Values of LINK: what the other span is to this one
CREATED = "creation_context"
PRODUCER = "producer"
JOINED = "join"
EARLIER = "earlier_attempt"
