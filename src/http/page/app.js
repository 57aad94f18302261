// app.js: the page. State is one list of conversations, one of them open, at most one answer
// running; what is drawn follows from it.
'use strict';

const $ = (id) => document.getElementById(id);
const SAMPLING = ['temperature', 'top_p', 'top_k', 'min_p', 'max_tokens', 'seed'];
const PANEL_MS = 2000;

const state = {store: null, list: [], open: null, views: new Map(), running: null, rates: {}};

// ---- conversations -------------------------------------------------------------------------

function blank() {
  return {id: crypto.randomUUID ? crypto.randomUUID() : String(Math.random()).slice(2),
    title: '', updated: Date.now(), system: localStorage.getItem('system') || '', messages: []};
}

async function save(conversation) {
  conversation.updated = Date.now();
  const first = conversation.messages.find((m) => m.role === 'user');
  conversation.title = first ? first.content.trim().split('\n')[0].slice(0, 80) : '';
  if (conversation.messages.length === 0) return;
  if (!state.list.includes(conversation)) state.list.push(conversation);
  state.list.sort((a, b) => b.updated - a.updated);
  drawList();
  const {messages} = conversation;
  const plain = messages.map(({live, ...message}) => message);
  try {
    await state.store.put({...conversation, messages: plain});
  } catch (error) {
    say(`This conversation could not be kept in the browser: ${error.message}`);
  }
}

function drawList() {
  $('conversations').replaceChildren(...state.list.map((conversation) => {
    const open = element('button', {type: 'button', class: 'open',
      onclick: () => show(conversation)}, conversation.title || 'New conversation');
    const remove = element('button', {type: 'button', class: 'delete',
      'aria-label': `Delete ${conversation.title}`, onclick: () => discard(conversation)}, '×');
    return element('li', {'aria-current': conversation === state.open && 'true'}, open, remove);
  }));
}

function show(conversation) {
  if (conversation !== state.open) stop();
  state.open = conversation;
  state.views.clear();
  $('system').value = conversation.system;
  document.body.classList.remove('menu');
  $('menu').setAttribute('aria-expanded', 'false');
  $('messages').replaceChildren();
  for (const message of conversation.messages) append(message);
  if (conversation.messages.length === 0) {
    $('messages').append(element('li', {class: 'empty'},
      element('strong', {}, 'What is on your mind?'), 'Everything stays on this machine.'));
  }
  drawList();
  scrollDown(true);
  $('input').focus();
}

async function discard(conversation) {
  if (!confirm(`Delete “${conversation.title}”?`)) return;
  if (conversation === state.open) stop();
  state.list = state.list.filter((other) => other !== conversation);
  await state.store.remove(conversation.id);
  if (conversation === state.open) show(blank());
  else drawList();
}

function append(message) {
  const view = new MessageView(message, {edit, regenerate});
  state.views.set(message, view);
  const empty = $('messages').querySelector('.empty');
  if (empty) empty.remove();
  $('messages').append(view.node);
  return view;
}

function cutFrom(message) {
  const {messages} = state.open;
  for (const gone of messages.splice(messages.indexOf(message))) {
    state.views.get(gone).node.remove();
    state.views.delete(gone);
  }
}

// ---- one answer ----------------------------------------------------------------------------

function request(conversation) {
  const body = {model: $('model').value || undefined, messages: []};
  if (conversation.system.trim()) {
    body.messages.push({role: 'system', content: conversation.system});
  }
  for (const {role, content, reasoning, live} of conversation.messages) {
    if (live) continue;
    body.messages.push(reasoning ? {role, content, reasoning_content: reasoning}
      : {role, content});
  }
  for (const name of SAMPLING) {
    const value = $(name).value.trim();
    if (value !== '' && Number.isFinite(Number(value))) body[name] = Number(value);
  }
  if ($('think').value) {
    body.chat_template_kwargs = {enable_thinking: $('think').value === 'yes'};
  }
  return body;
}

function timeLeft(run, {done, total}) {
  const now = performance.now();
  if (run.firstDone === undefined || done < run.firstDone) {
    run.firstDone = done;
    run.firstAt = now;
    return 0;
  }
  const speed = (done - run.firstDone) / (now - run.firstAt);
  return speed > 0 ? (total - done) / speed / 1000 : 0;
}

function speedText(speed) {
  return `${speed >= 100 ? Math.round(speed) : speed.toFixed(1)} tok/s`;
}

// timings: the engine's own, where it says.
function figures(usage, timings) {
  const cached = usage.prompt_tokens_details && usage.prompt_tokens_details.cached_tokens || 0;
  const took = timings ? timings.predicted_ms / 1000 : 0;
  return `${count(usage.completion_tokens)} tokens` +
    (took > 0 ? ` · ${speedText(usage.completion_tokens / took)}` : '') +
    ` · ${count(usage.prompt_tokens)} read, ${count(cached)} of them known`;
}

async function answer() {
  const conversation = state.open;
  const body = request(conversation);
  const message = {role: 'assistant', content: '', reasoning: '', live: true};
  conversation.messages.push(message);
  const view = append(message);
  const run = {controller: new AbortController(), conversation};
  state.running = run;
  view.showProgress({done: 0, total: 0});
  setRunning(true);
  const grew = (field, text) => {
    message[field] += text;
    view.changed(() => scrollDown(false));
  };
  try {
    const finish = await converse(body, run.controller.signal, {
      text: (text) => grew('content', text),
      reasoning: (text) => grew('reasoning', text),
      call: (call) => {
        const calls = message.calls = message.calls || [];
        const target = calls[call.index] = calls[call.index] || {name: '', arguments: ''};
        target.name += call.function && call.function.name || '';
        target.arguments += call.function && call.function.arguments || '';
      },
      progress: (p) => view.showProgress({...p, left: timeLeft(run, p)}),
      usage: (usage, timings) => { message.stats = figures(usage, timings); },
    });
    message.finish = finish || 'broken';
  } catch (error) {
    if (error.name === 'AbortError') message.finish = 'stopped';
    else message.error = explain(error);
  }
  delete message.live;
  state.running = state.running === run ? null : state.running;
  view.finish();
  setRunning(state.running !== null);
  scrollDown(false);
  await save(conversation);
}

function explain(error) {
  if (!(error instanceof ApiError)) {
    return `The server did not answer (${error.message}). Is smoe http still running?`;
  }
  if (error.status === 401) return `${error.message} Enter the key under Settings.`;
  return error.message;
}

function stop() {
  if (state.running) state.running.controller.abort();
}

function send() {
  const text = $('input').value.trim();
  if (!text || state.running) return;
  $('input').value = '';
  grow();
  const message = {role: 'user', content: text};
  state.open.messages.push(message);
  append(message);
  save(state.open);
  answer();
  scrollDown(true);
}

function edit(message) {
  stop();
  $('input').value = message.content;
  cutFrom(message);
  save(state.open);
  grow();
  $('input').focus();
}

function regenerate(message) {
  if (state.running) return;
  cutFrom(message);
  answer();
}

// ---- around it -----------------------------------------------------------------------------

function say(text) {
  $('state').textContent = text;
}

function setRunning(on) {
  $('stop').hidden = !on;
  $('send').hidden = on;
  say(on ? '' : 'Ready.');
}

function grow() {
  const input = $('input');
  input.style.height = 'auto';
  input.style.height = `${input.scrollHeight + 2}px`;
}

// Follows the answer only for one who is reading its end.
let following = true;

function scrollDown(force) {
  const box = $('scroll');
  if (force) following = true;
  if (following) box.scrollTop = box.scrollHeight;
  $('down').hidden = following;
}

function watchScroll() {
  const box = $('scroll');
  following = box.scrollHeight - box.scrollTop - box.clientHeight < 60;
  $('down').hidden = following;
}

function gigabytes(bytes) {
  return bytes >= 1e9 ? `${(bytes / 1e9).toFixed(1)} GB` : `${Math.round(bytes / 1e6)} MB`;
}

// figures: what /metrics says, by name.
function drawPanel(figures) {
  const get = (name) => figures.get('smoe_' + name);
  const show = (id, value, text) => {
    $(id).parentElement.hidden = value === undefined;
    $(id).textContent = value === undefined ? '' : text(value);
  };
  show('context', get('context_used_tokens'), (used) =>
    `${count(used)} of ${count(get('context_tokens'))}`);
  show('hits', get('expert_hit_ratio'), (ratio) => `${Math.round(100 * ratio)} %`);
  // A rate is what was done since the last look, by the time that the engine spent on it; where
  // nothing was done, the last one stays.
  const rate = (what, time) => {
    const [done, spent] = [get(what), get(time)];
    const last = state.rates[what] || {done: 0, spent: 0};
    const value = spent > last.spent ? (done - last.done) / (spent - last.spent) : last.value;
    state.rates[what] = {done, spent, value};
    return value;
  };
  show('speed', rate('generated_tokens_total', 'decode_seconds_total'),
    speedText);
  show('drive', rate('expert_read_bytes_total', 'expert_read_seconds_total'),
    (bytes) => `${(bytes / 1e9).toFixed(2)} GB/s`);
  const parts = ['scout', 'kv', 'scratch', 'ring'].map((name) =>
    ({name, size: figures.get(`smoe_memory_bytes{part="${name}"}`)})).filter((part) => part.size);
  $('memory').replaceChildren(...parts.map(({name, size}) => {
    const bar = element('i', {class: name, title: `${name} ${gigabytes(size)}`});
    bar.style.flexGrow = size;
    return bar;
  }));
  $('memory-text').replaceChildren(...parts.flatMap(({name, size}, i) => [i ? ' · ' : '',
    element('b', {class: name}, name), ` ${gigabytes(size)}`]));
}

async function watchEngine() {
  if (!document.hidden) {
    try {
      drawPanel(await getFigures());
    } catch { /* the next request will say what is wrong */ }
  }
  setTimeout(watchEngine, PANEL_MS);
}

async function loadModels() {
  let models;
  try {
    models = await getModels();
  } catch (error) {
    say(explain(error));
    return;
  }
  const chosen = localStorage.getItem('model');
  $('model').replaceChildren(...models.map((model) =>
    element('option', {value: model.id, selected: model.id === chosen}, model.id)));
  say('Ready.');
}

function applyTheme() {
  const wanted = localStorage.getItem('theme') ||
    (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
  document.documentElement.dataset.theme = wanted;
  document.documentElement.style.colorScheme = wanted;
}

function exportAll() {
  const blob = new Blob([JSON.stringify(state.list, null, 1)], {type: 'application/json'});
  const anchor = element('a', {href: URL.createObjectURL(blob), download: 'conversations.json'});
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(anchor.href), 1000);
}

function bindSettings() {
  for (const name of [...SAMPLING, 'think', 'theme', 'key']) {
    $(name).value = localStorage.getItem(name) || '';
    $(name).addEventListener('change', () => {
      if ($(name).value) localStorage.setItem(name, $(name).value);
      else localStorage.removeItem(name);
      if (name === 'theme') applyTheme();
      if (name === 'key') loadModels();
    });
  }
  $('system').addEventListener('change', () => {
    state.open.system = $('system').value;
    localStorage.setItem('system', $('system').value);
    if (state.open.messages.length) save(state.open);
  });
  $('settings-button').addEventListener('click', () => $('settings').showModal());
  $('export').addEventListener('click', exportAll);
}

function bindKeys() {
  $('input').addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      send();
    } else if (event.key === 'ArrowUp' && $('input').value === '' && !state.running) {
      const own = state.open.messages.filter((m) => m.role === 'user');
      if (own.length) {
        event.preventDefault();
        edit(own[own.length - 1]);
      }
    }
  });
  document.addEventListener('keydown', (event) => {
    if ($('settings').open) return;
    if (event.key === 'Escape') {
      if (document.body.classList.contains('menu')) toggleMenu();
      else stop();
    } else if (event.ctrlKey && event.shiftKey && event.key.toLowerCase() === 'o') {
      event.preventDefault();
      show(blank());
    }
  });
}

function toggleMenu() {
  const on = document.body.classList.toggle('menu');
  $('menu').setAttribute('aria-expanded', String(on));
}

async function start() {
  applyTheme();
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', applyTheme);
  bindSettings();
  bindKeys();
  $('composer').addEventListener('submit', (event) => {
    event.preventDefault();
    send();
  });
  $('stop').addEventListener('click', stop);
  $('new').addEventListener('click', () => show(blank()));
  $('menu').addEventListener('click', toggleMenu);
  $('down').addEventListener('click', () => scrollDown(true));
  $('scroll').addEventListener('scroll', watchScroll, {passive: true});
  $('input').addEventListener('input', grow);
  $('model').addEventListener('change', () => localStorage.setItem('model', $('model').value));
  document.querySelector('main').addEventListener('click', (event) => {
    if (document.body.classList.contains('menu') && event.target !== $('menu')) toggleMenu();
  });
  state.store = await Store.open();
  state.list = await state.store.all();
  await loadModels();
  if (!state.store.lasts) say('This browser keeps nothing: conversations end with this window.');
  show(state.list[0] || blank());
  watchEngine();
}

start();
