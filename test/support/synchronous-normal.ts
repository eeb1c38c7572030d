import Driver from 'better-sqlite3'

// Loaded before the program: the same server, with commits that are not synced. What a test of durability must notice.
const { pragma } = Driver.prototype
Driver.prototype.pragma = function (source, ...options) {
  return pragma.call(this, source.replace('synchronous = FULL', 'synchronous = NORMAL'), ...options)
}
