"""An engine without our code: it echoes payloads, and goes wrong where a payload says so."""

import base64
import json
import os
import subprocess
import sys
import time


def say(**message):
    print(json.dumps(message), flush=True)


def answer(job, number, case):
    payloads = [payload for _, payload, *_ in case["inputs"]]
    text = " ".join(payloads)
    if "die" in text:
        os._exit(7)
    if "hang" in text or "--hangs" in sys.argv:
        time.sleep(600)
    if "slow" in text:
        time.sleep(2)
    if "garbage" in text:
        print("Traceback (most recent call last):", flush=True)
    if "nothing" in text:
        return
    if "stranger" in text:
        number = 10_000
    if "no trace" in text:
        say(type="trace", job=job, id=number, trace={"outputs": 3})
    elif "refuse" in text:
        say(type="refusal", job=job, id=number, rule="state-1", step="count", why="no state")
    elif "crash" in text:
        say(type="crash", job=job, id=number, error="ValueError: no", traceback="line 3")
    else:
        outputs = [
            base64.b64encode(payload.encode("latin-1") + b"\n").decode() for payload in payloads
        ]
        trace = {"outputs": [{"pipeline": "first", "sink": 0, "outputs": outputs}]}
        say(type="trace", job=job, id=number, trace=trace, unknown="is ignored")


if "--child" in sys.argv:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    print("child", child.pid, file=sys.stderr, flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "hello":
        capabilities = {"isolation": ["isolated"], "stop": "none"}
        protocol = "wallaroo-engine/1"
        more = {"seconds": 60} if "--patient" in sys.argv else {}
        about = {"name": "faulty", "version": "3", "capabilities": capabilities, **more}
        say(type="hello", protocol=protocol, **about)
    elif message["type"] == "job":
        cases = message["cases"]
        if "--at-the-end" in sys.argv and any("die" in str(case) for case in cases):
            os._exit(7)
        for case in reversed(cases) if "--backwards" in sys.argv else cases:
            answer(message["job"], case["id"], case["case"])
        say(type="done", job=message["job"])
        if "--once" in sys.argv:
            os._exit(0)
