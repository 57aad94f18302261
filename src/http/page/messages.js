// messages.js: one message on the page: what was said, what stands around it, what can be done.
'use strict';

function seconds(s) {
  if (s < 60) return `${Math.max(1, Math.round(s))} s`;
  return `${Math.floor(s / 60)} min ${Math.round(s % 60)} s`;
}

function count(n) {
  return n.toLocaleString('en');
}

class MessageView {
  constructor(message, actions) {
    this.message = message;
    this.actions = actions;
    this.node = element('li', {class: message.role});
    this.drawn = '';
    this.pending = 0;
    if (message.role === 'user') {
      this.node.append(element('div', {class: 'text'}, message.content));
    } else {
      this.body = element('div', {class: 'markdown'});
      this.markdown = new MarkdownView(this.body);
      this.node.append(this.body);
      this.draw();
    }
    this.bar = element('div', {class: 'actions'});
    this.node.append(this.bar);
    if (!message.live) this.finish();
  }

  // Draws at most once per frame, however fast the words come.
  changed(after) {
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => {
      this.pending = 0;
      this.draw();
      after();
    });
  }

  draw() {
    const {message} = this;
    if (message.reasoning) this.drawReasoning();
    if (message.content !== this.drawn) {
      this.drawn = message.content;
      this.markdown.update(message.content);
    }
    if (this.progress && (message.content || message.reasoning || !message.live)) {
      this.progress.remove();
      this.progress = null;
    }
  }

  drawReasoning() {
    if (!this.think) {
      this.thinkTitle = element('summary', {}, 'Reasoning');
      this.thinkText = element('div', {});
      this.think = element('details', {class: 'think'}, this.thinkTitle, this.thinkText);
      this.node.insertBefore(this.think, this.body);
    }
    const thinking = this.message.live && !this.message.content;
    this.thinkTitle.textContent = thinking ? 'Reasoning …' : 'Reasoning';
    this.thinkText.textContent = this.message.reasoning;
  }

  showProgress({done, total, left}) {
    if (this.message.content || this.message.reasoning) return;
    if (!this.progress) {
      this.progressBar = element('progress', {max: 1, value: 0, 'aria-label': 'Reading'});
      this.progressText = element('span');
      this.progress = element('div', {class: 'prefill'}, this.progressBar, this.progressText);
      this.node.insertBefore(this.progress, this.body);
    }
    if (total) this.progressBar.value = done / total;
    else this.progressBar.removeAttribute('value');
    this.progressText.textContent = !total ? 'Waiting for the engine …'
      : `Reading ${count(done)} of ${count(total)} tokens` + (left ? `, ${seconds(left)} left` : '');
  }

  button(label, action) {
    this.bar.append(element('button', {type: 'button', onclick: action}, label));
  }

  finish() {
    const {message, actions} = this;
    this.bar.replaceChildren();
    if (this.body) this.draw();
    for (const call of message.calls || []) {
      this.node.insertBefore(element('pre', {class: 'note'},
        `${call.name}(${call.arguments})`), this.bar);
    }
    if (message.error) {
      this.node.insertBefore(element('p', {class: 'error', role: 'alert'}, message.error), this.bar);
    } else if (message.finish && message.finish !== 'stop') {
      const why = {length: 'Cut here: the longest answer allowed was reached.',
        stopped: 'Stopped here.', broken: 'The connection was lost here.'}[message.finish];
      if (why) this.node.insertBefore(element('p', {class: 'note'}, why), this.bar);
    }
    this.button('Copy', (event) => {
      navigator.clipboard.writeText(message.content).then(
        () => { event.target.textContent = 'Copied'; },
        () => { event.target.textContent = 'Not allowed'; });
    });
    if (message.role === 'user') this.button('Edit', () => actions.edit(message));
    else this.button('Again', () => actions.regenerate(message));
    if (message.stats) this.bar.append(element('span', {}, message.stats));
  }
}
