# Makes messages.json: python make.py (Python 3.11, transformers 5.24.0, jinja2 3.1.6): what transformers' apply_chat_template makes of messages before it renders them.
# Each case is messages, written out by two templates, or that it fails.
import json
import os

from transformers import PreTrainedTokenizerFast

here = os.path.dirname(os.path.abspath(__file__))
tokenizer = PreTrainedTokenizerFast(tokenizer_file=os.path.join(here, "../../../../test/fixtures/tiny-model/tokenizer.json"))

# The keys of each message in their order, and which of them a template finds.
TEMPLATES = {
    "whole": "{{ messages }}",
    "asked": "{% for m in messages %}{{ m.role }}:{{ m.content }}{{ m.content is defined }}{{ 'tool_calls' in m }}{{ m.reasoning_content }}{{ m.thinking }}{{ m['reasoning'] }}{% if m.tool_calls %}{{ m.tool_calls|tojson }}{% endif %};{% endfor %}",
}

USER = {"role": "user", "content": "1 + 1?"}
CASES = [
    [USER],
    [USER, {"role": "assistant", "content": None}],
    [USER, {"role": None, "content": None}],
    [USER, {"role": "assistant", "content": "2", "tool_calls": None, "name": None}],
    [USER, {"role": "assistant", "content": "", "tool_calls": [], "refusal": False, "n": 0}],
    # Only the keys of a message itself.
    [USER, {"role": "assistant", "content": None, "tool_calls": [{"id": None, "function": {"name": "add", "arguments": {"a": None}}}]}],
    [{"role": "user", "content": [{"type": "text", "text": None}, {"type": "image", "image": None}]}],
    [{"role": "user", "content": [None]}],
    # One text under the names that models have for it.
    [USER, {"role": "assistant", "content": "2", "reasoning": "one more"}],
    [USER, {"role": "assistant", "content": "2", "thinking": "one more"}],
    [USER, {"role": "assistant", "reasoning_content": "one more", "content": "2"}],
    [USER, {"role": "assistant", "reasoning": "c", "thinking": "b", "reasoning_content": "a", "content": "2"}],
    [USER, {"role": "assistant", "reasoning": "c", "thinking": "b", "content": "2"}],
    [USER, {"role": "assistant", "reasoning": "c", "reasoning_content": "a", "content": "2"}],
    [USER, {"role": "assistant", "reasoning": "c", "thinking": None, "reasoning_content": None, "content": None}],
    [USER, {"role": "assistant", "reasoning": "", "content": "2"}],
    [USER, {"role": "assistant", "reasoning": "c", "reasoning_content": "", "content": "2"}],
    [USER, {"role": "assistant", "reasoning": ["c", {"d": None}], "content": "2"}],
    [{"role": "user", "content": "1 + 1?", "reasoning": "by somebody"}],
    [{"reasoning": None, "thinking": None, "reasoning_content": None}],
    [{}],
    [],
]


def outcome(messages, template):
    try:
        return {"text": tokenizer.apply_chat_template(messages, chat_template=template, tokenize=False)}
    except Exception as error:
        return {"error": type(error).__name__}


cases = [
    {"messages": messages, **{name: outcome(messages, template) for name, template in TEMPLATES.items()}}
    for messages in CASES
]
with open(os.path.join(here, "messages.json"), "w") as file:
    json.dump({"templates": TEMPLATES, "cases": cases}, file, indent=1)
    file.write("\n")
print(len(cases), "cases,", sum("text" in case["whole"] for case in cases), "with a text")
