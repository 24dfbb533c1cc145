// What a program of a peer takes note of, and how it talks to the benchmark: notes.py for Node.
export const url = process.env.PEER_URL
export const command = process.argv[2]
export const given = process.argv.slice(3).map(Number)
export const padding = 'x'.repeat(100)
const seconds = () => (performance.timeOrigin + performance.now()) / 1000
const tell = facts => console.log(JSON.stringify(facts))
const pause = wait => new Promise(resolve => setTimeout(resolve, wait * 1000))

export function notes (expected) {
  const delays = []
  let left = expected, first = null, told = expected
  if (process.env.PEER_PROGRESS) {
    setInterval(() => { if (left !== told) tell({ first, calls: expected - (told = left) }) }, 20)
  }
  return due => {
    first ??= Number(process.hrtime.bigint()) / 1e9
    if (due) delays.push((seconds() - due) * 1000)
    if (--left === 0 && !process.env.PEER_PROGRESS) tell({ first, delays })
  }
}

// With PEER_PROGRESS, a worker begins when it is told to: together with others.
export async function go () {
  if (!process.env.PEER_PROGRESS) return
  tell('ready')
  await new Promise(resolve => process.stdin.once('data', resolve))
}

export function ready () {
  if (!process.env.PEER_PROGRESS) tell('ready')
  process.stdin.on('end', () => process.exit(0))
  process.stdin.resume()
}

export async function enqueue (count, put) {
  const started = performance.now()
  for (let first = 0; first < count; first += 1000) await put(Array(Math.min(1000, count - first)).fill({ due: 0, x: padding }))
  tell({ seconds: (performance.now() - started) / 1000 })
}

export async function schedule (rate, length, lead, put) {
  const begin = seconds() + lead
  const dues = Array.from({ length: Math.floor(rate * length) }, (_, number) => begin + number / rate)
  for (let first = 0; first < dues.length; first += 1000) await put(dues.slice(first, first + 1000))
}

export async function single (count, callers, put) {
  const caller = async () => { for (let number = 0; number < Math.floor(count / callers); number++) await put({ due: 0, x: padding }) }
  const started = performance.now()
  await Promise.all(Array.from({ length: callers }, caller))
  tell({ seconds: (performance.now() - started) / 1000 })
}

export async function send (count, rate, put) {
  for (let number = -20; number < count; number++) {
    await put({ due: number < 0 ? 0 : seconds(), x: padding })
    await pause(1 / rate)
  }
}
