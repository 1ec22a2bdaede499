#!/bin/sh
# An agent in ten lines: reads the turn as a line of JSON, asks for a tool, answers in JSON lines.
read -r turn
text=$(printf '%s' "$turn" | sed -E 's/.*"texts": *\["(([^"\\]|\\.)*)".*/\1/') # still escaped, as JSON wants it
echo '{"type":"show","text":"looking outside … "}'
echo '{"type":"tool","id":"1","name":"write_file","arguments":{"path":"asked.txt","content":"somebody asked"}}'
read -r result
sleep "${WEATHER_SECONDS:-1}"
printf '{"type":"text","text":"You asked: %s. It is sunny, and I noted that you asked."}\n' "$text"
