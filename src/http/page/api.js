// api.js: the server's interface as any client uses it; nothing here is known to the page alone.
'use strict';

class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

function headers() {
  const key = localStorage.getItem('key');
  return key ? {Authorization: 'Bearer ' + key} : {};
}

async function failure(response) {
  let message = `${response.status} ${response.statusText}`;
  try {
    message = (await response.json()).error.message || message;
  } catch { /* not the API's own error: the status has to do */ }
  return new ApiError(response.status, message);
}

async function get(path) {
  const response = await fetch(path, {headers: headers(), cache: 'no-store'});
  if (!response.ok) throw await failure(response);
  return response;
}

async function getModels() {
  return (await (await get('v1/models')).json()).data;
}

// The samples of /metrics by name and labels.
async function getFigures() {
  const samples = [...(await (await get('metrics')).text()).matchAll(/^([a-z][^ ]*) (\S+)$/gm)];
  return new Map(samples.map(([, name, value]) => [name, Number(value)]));
}

// Every server-sent event's data, and every comment, whatever pieces the bytes come in.
async function* serverSentEvents(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const {done, value} = await reader.read();
    if (done) return;
    const lines = (rest + value).split('\n');
    rest = lines.pop();
    for (const line of lines) {
      if (line.startsWith('data:')) yield {data: line.slice(5).trim()};
      else if (line.startsWith(':')) yield {comment: line.slice(1).trim()};
    }
  }
}

// Streams one answer. on = {text, reasoning, call, progress, usage}. Returns the finish reason;
// null: the stream broke off before it was said. Throws ApiError, and AbortError when stopped.
async function converse(request, signal, on) {
  const response = await fetch('v1/chat/completions', {
    method: 'POST', signal, cache: 'no-store',
    headers: {...headers(), 'Content-Type': 'application/json'},
    body: JSON.stringify({...request, stream: true, stream_options: {include_usage: true}}),
  });
  if (!response.ok) throw await failure(response);
  let finish = null, timings = null;
  for await (const {data, comment} of serverSentEvents(response)) {
    if (comment !== undefined) {
      const found = /^prefill (\d+)\/(\d+)$/.exec(comment);
      on.progress(found ? {done: Number(found[1]), total: Number(found[2])} : {done: 0, total: 0});
      continue;
    }
    if (data === '[DONE]') break;
    const chunk = JSON.parse(data);
    if (chunk.error) throw new ApiError(500, chunk.error.message);
    timings = chunk.timings || timings;
    if (chunk.usage) on.usage(chunk.usage, timings);
    const choice = chunk.choices && chunk.choices[0];
    if (!choice) continue;
    const delta = choice.delta || {};
    if (delta.reasoning_content) on.reasoning(delta.reasoning_content);
    if (delta.content) on.text(delta.content);
    for (const call of delta.tool_calls || []) on.call(call);
    finish = choice.finish_reason || finish;
  }
  return finish;
}
