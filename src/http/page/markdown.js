// markdown.js: shows a model's Markdown while it streams in.
//
// Only nodes and text are made, never markup out of a string: whatever a model writes, it stays
// text. Links lead to http, https and mailto and nowhere else; images are links, so that nothing is
// loaded that nobody clicked. Work is linear in the text: a search for a closing mark that found
// none is not repeated, and nesting is bounded.
'use strict';

const MAX_DEPTH = 12;

function element(name, attributes, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
    else if (value === true) node.setAttribute(key, '');
    else if (value !== false && value != null) node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child != null));
  return node;
}

// ---- inside a line -------------------------------------------------------------------------

const PUNCTUATION = /[!-/:-@[-`{-~]/;
const EMPHASIS = [['***', ['strong', 'em']], ['___', ['strong', 'em']], ['**', ['strong']],
  ['__', ['strong']], ['~~', ['del']], ['*', ['em']], ['_', ['em']]];

function safeLink(address) {
  return /^(https?:\/\/|mailto:)[^\s<>"]+$/i.test(address) ? address : null;
}

function link(address, children) {
  return element('a', {href: address, target: '_blank', rel: 'noopener noreferrer'}, ...children);
}

// Where `mark` closes what it opened at text[from - 1], or -1. What closes does not depend on
// where it was opened: therefore one failure holds for the rest of the text.
function closing(text, mark, from, hopeless) {
  if (hopeless.has(mark)) return -1;
  for (let at = text.indexOf(mark, from); at >= 0; at = text.indexOf(mark, at + 1)) {
    const before = text[at - 1] === mark[0] ? text[at - 2] : text[at - 1];
    if (/\s/.test(before) || text[at - 1] === '\\') continue;
    if (mark.length < 3 && text[at + mark.length] === mark[0] && text[at - 1] !== mark[0]) {
      at += mark.length; // a longer run: it closes something else
      continue;
    }
    if (mark[0] === '_' && /\w/.test(text[at + mark.length] || '')) continue;
    if (at > from) return at;
  }
  hopeless.add(mark);
  return -1;
}

function bracketEnd(text, from, open, close) {
  let depth = 0;
  for (let i = from; i < text.length && i < from + 2000; i++) {
    if (text[i] === '\\') i++;
    else if (text[i] === open) depth++;
    else if (text[i] === close && --depth === 0) return i;
  }
  return -1;
}

// Each of these looks at text[i] and gives [nodes, next] or null.
function codeSpan(text, i, hopeless) {
  const ticks = /^`+/.exec(text.slice(i, i + 64))[0];
  if (hopeless.has(ticks)) return null;
  for (let at = text.indexOf(ticks, i + ticks.length); at >= 0;
    at = text.indexOf(ticks, at)) {
    let end = at;
    while (text[end] === '`') end++;
    if (end - at === ticks.length) {
      const body = text.slice(i + ticks.length, at).replace(/\n/g, ' ');
      const trimmed = /^ .*[^ ].* $/.test(body) ? body.slice(1, -1) : body;
      return [[element('code', {}, trimmed)], end];
    }
    at = end;
  }
  hopeless.add(ticks);
  return null;
}

function bracketLink(text, i, depth, hopeless) {
  const start = text[i] === '!' ? i + 1 : i;
  if (text[start] !== '[' || hopeless.has(']')) return null;
  if (text.indexOf(']', start) < 0) hopeless.add(']');
  const middle = bracketEnd(text, start, '[', ']');
  if (middle < 0 || text[middle + 1] !== '(') return null;
  const end = bracketEnd(text, middle + 1, '(', ')');
  if (end < 0) return null;
  const address = safeLink(text.slice(middle + 2, end).trim().replace(/\s+["'(].*$/s, ''));
  if (!address) return null;
  const label = text.slice(start + 1, middle);
  return [[link(address, label ? inline(label, depth + 1) : [address])], end + 1];
}

function bareLink(text, i) {
  const found = /^<?(https?:\/\/[^\s<>"`]+)>?/i.exec(text.slice(i, i + 2000));
  if (!found || (text[i] !== '<' && /\w/.test(text[i - 1] || ''))) return null;
  let address = found[1];
  if (text[i] === '<') {
    return found[0].endsWith('>') ? [[link(address, [address])], i + found[0].length] : null;
  }
  address = address.replace(/[.,;:!?'*_~]+$/, '');
  while (address.endsWith(')') && !address.includes('(')) address = address.slice(0, -1);
  return [[link(address, [address])], i + address.length];
}

function emphasis(text, i, depth, hopeless) {
  for (const [mark, names] of EMPHASIS) {
    if (!text.startsWith(mark, i)) continue;
    const after = text[i + mark.length];
    if (after === undefined || /\s/.test(after)) return null;
    if (mark.length < 3 && after === mark[0]) continue;
    if (mark[0] === '_' && /\w/.test(text[i - 1] || '')) return null;
    const end = closing(text, mark, i + mark.length, hopeless);
    if (end < 0) continue;
    let nodes = inline(text.slice(i + mark.length, end), depth + 1);
    for (const name of [...names].reverse()) nodes = [element(name, {}, ...nodes)];
    return [nodes, end + mark.length];
  }
  return null;
}

function inline(text, depth = 0) {
  const nodes = [];
  const hopeless = new Set();
  let plain = '';
  const flush = () => {
    if (plain) nodes.push(document.createTextNode(plain));
    plain = '';
  };
  for (let i = 0; i < text.length;) {
    const c = text[i];
    let found = null;
    if (c === '\\' && text[i + 1] === '\n') found = [[element('br')], i + 2];
    else if (c === '\\' && PUNCTUATION.test(text[i + 1] || '')) {
      plain += text[i + 1];
      i += 2;
      continue;
    } else if (c === '\n') found = [[element('br')], i + 1];
    else if (c === '`') found = codeSpan(text, i, hopeless);
    else if (depth < MAX_DEPTH) {
      if (c === '[' || c === '!') found = bracketLink(text, i, depth, hopeless);
      else if (c === '<' || c === 'h' || c === 'H') found = bareLink(text, i);
      else if (c === '*' || c === '_' || c === '~') found = emphasis(text, i, depth, hopeless);
    }
    if (found) {
      flush();
      nodes.push(...found[0]);
      i = found[1];
      continue;
    }
    // A run of marks that opened nothing is text as a whole, and looked at once.
    const run = /[`*_~]/.test(c) ? /^(.)\1*/s.exec(text.slice(i, i + 256))[0] : c;
    plain += run;
    i += run.length;
  }
  flush();
  return nodes;
}

// ---- blocks --------------------------------------------------------------------------------

const FENCE = /^ {0,3}(`{3,}|~{3,})[ \t]*([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})(?=[ \t]|$)(.{0,999})$/;
const RULE = /^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/;
const QUOTE = /^ {0,3}>[ ]?/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])(?:( +)|$)/;
const TABLE_RULE = /^ *\|? *:?-+:? *(?:\| *:?-+:? *)*\|? *$/;

function isBlank(line) {
  return /^\s*$/.test(line);
}

function isTable(lines, i) {
  return lines[i].includes('|') && i + 1 < lines.length && lines[i + 1].includes('-') &&
    lines[i + 1].length < 2000 && TABLE_RULE.test(lines[i + 1]) &&
    cells(lines[i]).length === cells(lines[i + 1]).length;
}

function startsBlock(lines, i) {
  const line = lines[i];
  return FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) ||
    (ITEM.test(line) && !/^ *\d/.test(line)) || /^ {0,3}1[.)] /.test(line) || isTable(lines, i);
}

function codeBlock(language, text) {
  const label = element('span', {}, language || 'text');
  const copy = element('button', {type: 'button', class: 'copy', onclick: () => {
    navigator.clipboard.writeText(text).then(() => {
      copy.textContent = 'Copied';
      setTimeout(() => { copy.textContent = 'Copy'; }, 1500);
    }, () => { copy.textContent = 'Not allowed'; });
  }}, 'Copy');
  const code = element('pre', {tabindex: '0'}, element('code', {}, text));
  return element('figure', {class: 'code'}, element('figcaption', {}, label, copy), code);
}

function fence(lines, i) {
  const [, mark, info] = FENCE.exec(lines[i]);
  const body = [];
  const isEnd = (line) => {
    const found = /^ {0,3}(`{3,}|~{3,})[ \t]*$/.exec(line);
    return found && found[1][0] === mark[0] && found[1].length >= mark.length;
  };
  for (i++; i < lines.length && !isEnd(lines[i]); i++) body.push(lines[i]);
  return [codeBlock(info.trim().split(/\s/)[0].slice(0, 40), body.join('\n')), i + 1];
}

function quote(lines, i, depth) {
  const body = [];
  for (; i < lines.length && QUOTE.test(lines[i]); i++) body.push(lines[i].replace(QUOTE, ''));
  return [element('blockquote', {}, ...blocks(body, depth + 1).map((b) => b.node)), i];
}

function cells(line) {
  return line.trim().replace(/^\|/, '').replace(/(^|[^\\])\|$/, '$1').split(/(?<!\\)\|/)
    .map((cell) => cell.trim().replace(/\\\|/g, '|'));
}

function table(lines, i) {
  const sides = cells(lines[i + 1]).map((cell) =>
    cell.endsWith(':') ? (cell.startsWith(':') ? 'center' : 'right') : 'left');
  const row = (line, name) => element('tr', {}, ...sides.map((side, k) =>
    element(name, {class: side}, ...inline(cells(line)[k] || ''))));
  const head = element('thead', {}, row(lines[i], 'th'));
  const body = element('tbody');
  for (i += 2; i < lines.length && lines[i].includes('|') && !isBlank(lines[i]); i++) {
    body.append(row(lines[i], 'td'));
  }
  return [element('div', {class: 'table', tabindex: '0'}, element('table', {}, head, body)), i];
}

function indentOf(line) {
  return /^ */.exec(line)[0].length;
}

// One item: its lines without their indent, and whether a blank line stands between two of them.
function listItem(lines, i, width) {
  const body = [lines[i].slice(Math.min(width, lines[i].length))];
  let loose = false;
  for (i++; i < lines.length; i++) {
    if (isBlank(lines[i])) {
      if (i + 1 >= lines.length || isBlank(lines[i + 1]) || indentOf(lines[i + 1]) < 2) break;
      body.push('');
      loose = true;
    } else if (indentOf(lines[i]) >= width) body.push(lines[i].slice(width));
    else if (ITEM.test(lines[i]) || startsBlock(lines, i)) break;
    else body.push(lines[i].trimStart());
  }
  return {body, loose, next: i};
}

function list(lines, i, depth) {
  const first = ITEM.exec(lines[i]);
  const ordered = /\d/.test(first[2]);
  const node = ordered ? element('ol', {start: parseInt(first[2], 10)}) : element('ul');
  for (let last = i; i < lines.length; last = i) {
    const mark = ITEM.exec(lines[i]);
    if (!mark || /\d/.test(mark[2]) !== ordered || mark[1].length < first[1].length ||
        RULE.test(lines[i])) break;
    const width = mark[1].length + mark[2].length + Math.min((mark[3] || ' ').length, 4);
    const {body, loose, next} = listItem(lines, i, width);
    const parts = blocks(body, depth + 1).map((b) => b.node);
    node.append(element('li', {}, ...(loose ? parts : parts.flatMap((part) =>
      part.tagName === 'P' ? [...part.childNodes] : [part]))));
    i = next;
    while (i < lines.length && isBlank(lines[i]) && i + 1 < lines.length) i++;
    if (i < lines.length && !ITEM.test(lines[i])) {
      i = next;
      break;
    }
    if (i === last) break;
  }
  return [node, i];
}

function paragraph(lines, i) {
  const body = [lines[i].trim()];
  for (i++; i < lines.length && !isBlank(lines[i]) && !startsBlock(lines, i); i++) {
    body.push(lines[i].trim());
  }
  return [element('p', {}, ...inline(body.join('\n'))), i];
}

// Tabs that indent become spaces, except in code: there they are what a reader copies.
function linesOf(text) {
  let mark = '';
  return text.split(/\r?\n/).map((line) => {
    const found = /^ {0,3}(`{3,}|~{3,})/.exec(line);
    if (found && !mark) mark = found[1];
    else if (found && found[1].startsWith(mark)) mark = '';
    return mark ? line : line.replace(/^\t+/, (tabs) => '    '.repeat(tabs.length));
  });
}

// The blocks of these lines: [{node, line}], line = where it begins.
function blocks(lines, depth = 0) {
  const out = [];
  for (let i = 0; i < lines.length;) {
    if (isBlank(lines[i])) {
      i++;
      continue;
    }
    const line = i;
    let node;
    if (depth >= MAX_DEPTH) [node, i] = paragraph(lines, i);
    else if (FENCE.test(lines[i])) [node, i] = fence(lines, i);
    else if (HEADING.test(lines[i])) {
      const [, marks, text] = HEADING.exec(lines[i++]);
      node = element('h' + Math.min(marks.length + 2, 6), {},
        ...inline(text.trim().replace(/[ \t]+#+$/, '')));
    } else if (RULE.test(lines[i])) {
      node = element('hr');
      i++;
    } else if (QUOTE.test(lines[i])) [node, i] = quote(lines, i, depth);
    else if (isTable(lines, i)) [node, i] = table(lines, i);
    else if (ITEM.test(lines[i])) [node, i] = list(lines, i, depth);
    else [node, i] = paragraph(lines, i);
    out.push({node, line});
  }
  return out;
}

// A text that grows: what is finished stays as it is, only the rest is made anew. A block is
// finished when the next one has begun for certain: what a line begins can depend on all of it and
// on the one below (a table), therefore both must be whole.
class MarkdownView {
  constructor(root) {
    this.root = root;
    this.done = 0; // characters of the text in finished blocks
    this.open = []; // nodes of the others
  }

  update(text) {
    const lines = linesOf(text.slice(this.done));
    const made = blocks(lines);
    for (const node of this.open) node.remove();
    this.root.append(...made.map((block) => block.node));
    let last = made.length - 1;
    while (last > 0 && made[last].line > lines.length - 3) last--;
    this.open = made.slice(Math.max(last, 0)).map((block) => block.node);
    if (last <= 0) return;
    for (let n = made[last].line; n > 0; n--) this.done = text.indexOf('\n', this.done) + 1;
  }
}
