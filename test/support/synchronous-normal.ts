import Driver from 'better-sqlite3'

// For `--preload`: commits do not wait for the disk, on all threads of the server. The threads do not preload the modules
// of their process by themselves.
const own = Driver.prototype.pragma
Driver.prototype.pragma = function (source, options) {
  return own.call(this, source.replace('synchronous = FULL', 'synchronous = NORMAL'), options)
}
globalThis.Worker = class extends Worker {
  constructor(url: string | URL, options?: WorkerOptions) {
    super(url, { ...options, preload: import.meta.path })
  }
}
