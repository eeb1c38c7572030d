/** One kind of request of a load. */
export interface Workload {
  readonly name: string
  readonly call: {
    readonly path: string
    /** A JSON body; the word PHONE in it becomes a number of twelve digits. */
    readonly body: string
  }
  /** The path of the bare route that answers the same. */
  readonly barePath: string
  /** The status of nearly every answer. */
  readonly status: number
  /** Whether it uses the recipients of the previous sends, or random ones. */
  readonly to: 'recipients' | 'anybody'
}

export const credentials = { appId: 'bench', apiKey: 'key-of-the-benchmark' } as const
export const brandId = 'acme'

const caller = { ...credentials, brandId }

export const send: Workload = {
  name: '`POST /otp/send`',
  call: { path: '/otp/send', body: JSON.stringify({ ...caller, phone: 'PHONE' }) },
  barePath: '/otp/send',
  status: 200,
  to: 'anybody',
}

export const verifyAbsent: Workload = {
  name: '`POST /otp/verify`, no live code',
  call: { path: '/otp/verify', body: JSON.stringify({ ...caller, phone: 'PHONE', otp: '123456' }) },
  barePath: '/otp/verify/absent',
  status: 404,
  to: 'anybody',
}

export const verifyWrong: Workload = {
  name: '`POST /otp/verify`, wrong code',
  call: { path: '/otp/verify', body: JSON.stringify({ ...caller, phone: 'PHONE', otp: '123456' }) },
  barePath: '/otp/verify/wrong',
  status: 401,
  to: 'recipients',
}

export const notify: Workload = {
  name: '`POST /notify`, one SMS',
  call: {
    path: '/notify',
    body: JSON.stringify({ ...caller, channel: 'SMS', to: ['PHONE'], message: 'Your parcel is on its way.' }),
  },
  barePath: '/notify',
  status: 200,
  to: 'anybody',
}

/** In the order they are measured: the wrong codes come right after the sends whose recipients they go to. */
export const workloads: readonly Workload[] = [send, verifyWrong, verifyAbsent, notify]
