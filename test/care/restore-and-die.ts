import { restore } from '../../src/adapters/sqlite/restore.ts'

// A restore in a process that is killed right before the given step.

const [databaseFile = '', file = '', last = ''] = Bun.argv.slice(2)
restore(databaseFile, file, {
  force: false,
  owner: { pid: process.pid, isRoot: process.getuid?.() === 0, isRunning: () => true },
  now: Date.now(),
  actor: { by: 'command', name: 'test' },
  onStep: (step) => {
    if (step === last) process.kill(process.pid, 'SIGKILL')
  },
})
