// store.js: conversations, kept in this browser and nowhere else.
//
// A browser that keeps nothing (private windows, blocked storage) still holds a conversation until
// its window is closed, and the page says so.
'use strict';

class Store {
  static open() {
    return new Promise((resolve) => {
      const store = new Store();
      let request;
      try {
        request = indexedDB.open('smoe', 1);
      } catch {
        resolve(store);
        return;
      }
      request.onupgradeneeded = () =>
        request.result.createObjectStore('conversations', {keyPath: 'id'});
      request.onsuccess = () => {
        store.database = request.result;
        resolve(store);
      };
      request.onerror = request.onblocked = () => resolve(store);
    });
  }

  constructor() {
    this.database = null;
    this.kept = new Map(); // where there is no database
  }

  get lasts() {
    return this.database !== null;
  }

  run(mode, action) {
    return new Promise((resolve, reject) => {
      const transaction = this.database.transaction('conversations', mode);
      const request = action(transaction.objectStore('conversations'));
      transaction.oncomplete = () => resolve(request.result);
      transaction.onerror = transaction.onabort = () => reject(transaction.error);
    });
  }

  async all() {
    const list = this.database ? await this.run('readonly', (s) => s.getAll())
      : [...this.kept.values()];
    return list.sort((a, b) => b.updated - a.updated);
  }

  async put(conversation) {
    if (!this.database) this.kept.set(conversation.id, conversation);
    else await this.run('readwrite', (s) => s.put(conversation));
  }

  async remove(id) {
    if (!this.database) this.kept.delete(id);
    else await this.run('readwrite', (s) => s.delete(id));
  }
}
