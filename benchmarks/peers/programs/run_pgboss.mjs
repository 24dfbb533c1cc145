// pg-boss with large batches, LISTEN/NOTIFY, and polling at its shortest interval for scheduled jobs.
import { PgBoss } from 'pg-boss'
import { command, enqueue, given, go, notes, ready, schedule, send, single, url } from './notes.mjs'

const boss = new PgBoss({ connectionString: url, schedule: false, supervise: command === 'work', useListenNotify: command === 'work', max: 8 })
boss.on('error', error => console.error(error))
await boss.start()
if (command === 'schema') {
  await boss.createQueue('noop', { notify: true })
} else if (command === 'enqueue') {
  await enqueue(given[0], many => boss.insert('noop', many.map(data => ({ data }))))
} else if (command === 'schedule') {
  await schedule(...given, dues => boss.insert('noop', dues.map(due => ({ data: { due }, startAfter: new Date(due * 1000) }))))
} else if (command === 'single') {
  await single(...given, data => boss.send('noop', data))
} else if (command === 'send') {
  await send(...given, data => boss.send('noop', data))
} else if (command === 'work') {
  const call = notes(given[0])
  const pace = { batchSize: 3000, localConcurrency: 2, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5, notifyPollingIntervalSeconds: 0.5 }
  await go()
  await boss.work('noop', pace, async jobs => { for (const job of jobs) call(job.data.due) })
  ready()
}
if (command !== 'work') {
  await boss.stop({ graceful: false })
  process.exit(0)
}
