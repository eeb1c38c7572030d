import Driver from 'better-sqlite3'

// Given to a server by `--preload`: it runs with commits that do not wait for the disk, on all of its threads, which do
// not get what the process was told to load by themselves.
const own = Driver.prototype.pragma
Driver.prototype.pragma = function (source, options) {
  return own.call(this, source.replace('synchronous = FULL', 'synchronous = NORMAL'), options)
}
globalThis.Worker = class extends Worker {
  constructor(url: string | URL, options?: WorkerOptions) {
    super(url, { ...options, preload: import.meta.path })
  }
}
