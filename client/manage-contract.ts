// Written by `bun run contract` from the declarations in src/domain/operator. Edit those.

/** The fields of each action of the management API. */
export interface ManageActions {
  /** list the brands */ readonly 'brand.list': Readonly<Record<string, never>>
  /** list the apps with their scope, their keys and their webhook */
  readonly 'app.list': Readonly<Record<string, never>>
  /** list the budgets, with what was spent and what remains */
  readonly 'budget.list': Readonly<Record<string, never>>
  /** list the rules, including those of SMS_COUNTRIES */
  readonly 'destination.list': Readonly<Record<string, never>>
  /** list the relays with their URLs */
  readonly 'relay.list': Readonly<Record<string, never>>
  /** list the review numbers */
  readonly 'review-number.list': Readonly<Record<string, never>>
  /** list the tokens of the management API */
  readonly 'admin.token.list': Readonly<Record<string, never>>
  /** list the access requests */
  readonly 'request.list': {
    /** how many rows, at most 1000 */
    readonly limit?: string | number | null
  }
  /** list the audit log, newest first */
  readonly audit: {
    /** how many rows, at most 1000 */
    readonly limit?: string | number | null
  }
  /** what the guard knows and blocks */
  readonly 'guard.status': Readonly<Record<string, never>>
  /** what SMS cost, by day, currency, country, app, brand and provider */
  readonly spending: {
    /** today, 7-days, 30-days, this-month, last-month */
    readonly period?: 'today' | '7-days' | '30-days' | 'this-month' | 'last-month' | null
  }
  /** list the delivery log: each attempt with its provider, outcome and delivery report; newest first */
  readonly deliveries: {
    /** only of this request */
    readonly request?: string | null
    /** only to this phone number or e-mail address */
    readonly to?: string | null
    /** only with an attempt of this provider */
    readonly provider?: string | null
    /** only of this app */
    readonly app?: string | null
    /** only of this brand */
    readonly brand?: string | null
    /** only SMS, or only e-mail */
    readonly channel?: 'SMS' | 'EMAIL' | null
    /** only SMS to this country, such as GB */
    readonly country?: string | null
    /** only later: 30m, 12h, 7d, or a time such as 2026-11-21T14:00Z */
    readonly since?: string | null
    /** only earlier, in the same form */
    readonly until?: string | null
    /**
     * only with these statuses: delivered, accepted, not-delivered, rejected, temporary-failure, unknown,
     * skipped
     */
    readonly status?:
      | readonly (
          | 'delivered'
          | 'accepted'
          | 'not-delivered'
          | 'rejected'
          | 'temporary-failure'
          | 'unknown'
          | 'skipped'
        )[]
      | null
    /** only messages of this template */
    readonly template?: string | null
    /** only texts in this language, such as hi */
    readonly lang?: string | null
    /** only failures with this cause */
    readonly error?: 'recipient' | 'content' | 'account' | 'retryable' | 'unknown' | null
    /** how many rows, at most 1000 */
    readonly limit?: string | number | null
    /** the `next` of the previous page */
    readonly next?: string | null
  }
  /** list the calls of apps with their result and its reason; newest first */
  readonly requests: {
    /** only to this phone number or e-mail address */
    readonly to?: string | null
    /** only with an attempt of this provider */
    readonly provider?: string | null
    /** only of this app */
    readonly app?: string | null
    /** only of this brand */
    readonly brand?: string | null
    /** only SMS, or only e-mail */
    readonly channel?: 'SMS' | 'EMAIL' | null
    /** only SMS to this country, such as GB */
    readonly country?: string | null
    /** only later: 30m, 12h, 7d, or a time such as 2026-11-21T14:00Z */
    readonly since?: string | null
    /** only earlier, in the same form */
    readonly until?: string | null
    /** only calls of this kind */
    readonly call?: 'code' | 'verify' | 'notify' | null
    /** only calls with this result */
    readonly result?:
      | 'success'
      | 'failed'
      | 'wrong-code'
      | 'limited'
      | 'budget'
      | 'brand'
      | 'destination'
      | null
    /** how many rows, at most 1000 */
    readonly limit?: string | number | null
    /** the `next` of the previous page */
    readonly next?: string | null
  }
  /** list jobs that wait, are in flight, or can be retried */
  readonly 'queue.list': {
    /** only of this app */
    readonly app?: string | null
  }
  /** delivery, conversion and cost of each provider by country, and the order that they suggest */
  readonly routes: {
    /** from this time on: 12h, 7d, or a time in ISO 8601 */
    readonly since?: string | null
  }
  /** what other settings would have denied of the codes in the event log, and saved */
  readonly whatif: {
    /** from this time on: 12h, 7d, or a time in ISO 8601 */
    readonly since?: string | null
    /** the mode of the guard */
    readonly guard?: 'off' | 'record' | 'deny' | null
    /** SMS_COUNTRIES, such as IN and GB */
    readonly countries?: readonly string[] | null
    /** PHONE_LIMIT_PER_HOUR */
    readonly phoneHour?: string | number | null
  }
  /** the trace of one request: checks, limits, providers and delivery reports */
  readonly explain: {
    /** the requestId of the answer */
    readonly requestId: string
  }
  /** create a brand (active unless --status is given), or change these properties */
  readonly 'brand.put': {
    /** the brandId in API requests */
    readonly slug: string
    /** the display name in messages */
    readonly displayName?: string | null
    /** the status */
    readonly status?: 'pending' | 'active' | 'suspended' | null
    /** the web site on which browsers fill in the code (WebOTP) */
    readonly domain?: string | null
    /** the app hash of SMS Retriever */
    readonly androidHash?: string | null
    /** the language of its texts, such as hi; a new brand has en */
    readonly lang?: string | null
    /** the templates enabled on /notify, or "" for none */
    readonly notifyTemplates?: readonly string[] | null
    /** include the loginId of the request in OTP messages */
    readonly loginIdEnabled?: boolean | null
    /** an image at the top of its e-mails; an https URL */
    readonly logoUrl?: string | null
    /** the page to which a link in the e-mails of codes leads, with the code after #; an https URL */
    readonly linkUrl?: string | null
    /** the color of its e-mails, such as #0b57d0 */
    readonly color?: string | null
    /** use the registered-template (DLT) route to Indian numbers */
    readonly dltEnabled?: boolean | null
    /** the principal entity id (DLT) */
    readonly entityId?: string | null
    /** the URLs and phone numbers that the entity has registered, or "" for none */
    readonly dltAllowList?: readonly string[] | null
  }
  /** store the ids of a registered template */
  readonly 'brand.template': {
    /** the brandId */
    readonly slug: string
    /** the template: a built-in one, or one of the brand */
    readonly key: string
    /** the language of the text; the default is the brand's */
    readonly lang?: string | null
    /** the registered id; PROVIDER=ID for that of one provider */
    readonly ids?: readonly string[] | null
    /** the sender id (header) of the registration */
    readonly senderId?: string | null
    /** the greatest length of a value, 30 (without it) to 40 */
    readonly maxLength?: string | null
    /** remove the registration */
    readonly remove?: boolean | null
  }
  /** change the status of a brand: pending → active, active → suspended, suspended → active */
  readonly 'brand.status': {
    /** the brandId */
    readonly slug: string
    /** the new status */
    readonly status: 'pending' | 'active' | 'suspended'
  }
  /** store a text; a running server sends it from the next request on */
  readonly 'text.set': {
    /** the brandId */
    readonly slug: string
    /** the template, such as LOGIN_OTP */
    readonly key: string
    /** the language of the text; the default is the brand's */
    readonly lang?: string | null
    /** the e-mail of a code, instead of the SMS */
    readonly email?: boolean | null
    /** the text, in UTF-8; - for standard input */
    readonly text: string
    /** a variable of a new template, such as guest:text:30; replaces all earlier variables */
    readonly variables?: readonly string[] | null
    /** the subject of the e-mail */
    readonly subject?: string | null
    /** the HTML of the e-mail; by default, otpost builds it */
    readonly html?: string | null
    /** store a draft; text publish sends it */
    readonly draft?: boolean | null
  }
  /** send the draft of a text from the next request on */
  readonly 'text.publish': {
    /** the brandId */
    readonly slug: string
    /** the template, such as LOGIN_OTP */
    readonly key: string
    /** the language of the text; the default is the brand's */
    readonly lang?: string | null
    /** the e-mail of a code, instead of the SMS */
    readonly email?: boolean | null
  }
  /** delete the draft of a text */
  readonly 'text.discard': {
    /** the brandId */
    readonly slug: string
    /** the template, such as LOGIN_OTP */
    readonly key: string
    /** the language of the text; the default is the brand's */
    readonly lang?: string | null
    /** the e-mail of a code, instead of the SMS */
    readonly email?: boolean | null
  }
  /** send an earlier version of a text again, as a new version */
  readonly 'text.restore': {
    /** the brandId */
    readonly slug: string
    /** the template, such as LOGIN_OTP */
    readonly key: string
    /** the language of the text; the default is the brand's */
    readonly lang?: string | null
    /** the e-mail of a code, instead of the SMS */
    readonly email?: boolean | null
    /** the earlier version, such as 3 */
    readonly version: string
  }
  /** remove a text; the built-in text, if any, is used again */
  readonly 'text.remove': {
    /** the brandId */
    readonly slug: string
    /** the template, such as LOGIN_OTP */
    readonly key: string
    /** the language of the text; the default is the brand's */
    readonly lang?: string | null
    /** the e-mail of a code, instead of the SMS */
    readonly email?: boolean | null
  }
  /** approve a request: create its app and brand, and print the API key */
  readonly 'request.approve': {
    /** the id of the integration request */
    readonly id: string
    /** the appId of the new app */
    readonly appId: string
    /** the brandId of a new or existing brand */
    readonly brandSlug: string
    /** send the requester an e-mail, without the API key */
    readonly mail?: boolean | null
    /** its subject, instead of the default */
    readonly subject?: string | null
    /** its text, instead of the default; - for standard input */
    readonly text?: string | null
  }
  /** reject a request */
  readonly 'request.reject': {
    /** the id of the integration request */
    readonly id: string
    /** the reason; otpost does not send it */
    readonly reason?: string | null
    /** send the requester an e-mail, without the API key */
    readonly mail?: boolean | null
    /** its subject, instead of the default */
    readonly subject?: string | null
    /** its text, instead of the default; - for standard input */
    readonly text?: string | null
  }
  /** send the requester an e-mail after the decision */
  readonly 'request.mail': {
    /** the id of the integration request */
    readonly id: string
    /** its subject, instead of the default */
    readonly subject?: string | null
    /** its text, instead of the default; - for standard input */
    readonly text?: string | null
  }
  /** create an app and print its API key once */
  readonly 'app.issue': {
    /** the appId in API requests */
    readonly appId: string
    /** a brand that the app may use */
    readonly brands?: readonly string[] | null
    /** an operation that the app may use: otp (send, resend and verify) or notify */
    readonly operations?: readonly ('otp' | 'notify')[] | null
    /** the limit of calls per minute, instead of GLOBAL_LIMIT_PER_MINUTE */
    readonly perMinute?: string | number | null
    /** the limit of SMS notifications a day (UTC) to each country that is new to the app */
    readonly newCountrySmsPerDay?: string | number | null
  }
  /** change the brands, operations and limits of an app, also of one in APP_CREDENTIALS */
  readonly 'app.set': {
    /** the appId */
    readonly appId: string
    /** every brand */
    readonly anyBrand?: boolean | null
    /** a brand that the app may use; replaces the earlier brands */
    readonly brands?: readonly string[] | null
    /**
     * an operation that the app may use: otp (send, resend and verify) or notify; replaces the earlier
     * operations
     */
    readonly operations?: readonly ('otp' | 'notify')[] | null
    /** the limit of calls per minute, instead of GLOBAL_LIMIT_PER_MINUTE; default for that setting */
    readonly perMinute?: string | null
    /**
     * the limit of SMS notifications a day (UTC) to each country that is new to the app; default for no
     * limit
     */
    readonly newCountrySmsPerDay?: string | null
  }
  /** create and print a second API key; the first works until you revoke it */
  readonly 'app.rotate': {
    /** the appId */
    readonly appId: string
  }
  /** revoke one API key of an app */
  readonly 'app.revoke-key': {
    /** the appId */
    readonly appId: string
    /** the last four characters of the key */
    readonly key: string
  }
  /** revoke every API key of an app, except a key in APP_CREDENTIALS */
  readonly 'app.revoke': {
    /** the appId */
    readonly appId: string
  }
  /** set where events of an app go, and print the secret that signs them */
  readonly 'app.webhook': {
    /** the appId */
    readonly appId: string
    /** the URL that receives the events */
    readonly url?: string | null
    /** an event to send: message.delivered, message.failed, otp.verified, otp.locked; all by default */
    readonly events?:
      | readonly ('message.delivered' | 'message.failed' | 'otp.verified' | 'otp.locked')[]
      | null
    /** create no new secret; with the same URL and events, nothing changes */
    readonly keepSecret?: boolean | null
    /** end the webhook; events that wait are deleted */
    readonly off?: boolean | null
  }
  /** send a signed test event to the webhook of an app */
  readonly 'app.webhook-test': {
    /** the appId */
    readonly appId: string
  }
  /** send an event of an app again, with all its tries */
  readonly 'app.webhook-resend': {
    /** the appId */
    readonly appId: string
    /** the webhook-id of the event */
    readonly id: string
  }
  /** send all events of an app now whose latest try failed */
  readonly 'app.webhook-resend-all': {
    /** the appId */
    readonly appId: string
  }
  /** create or replace the budget of a scope */
  readonly 'budget.set': {
    /** server, brand:SLUG, app:APPID, country:CC, country:* or way:WAY */
    readonly scope: string
    /** the messages that the budget counts */
    readonly of?: 'all' | 'codes' | 'notifications' | null
    /** the calendar period, in UTC */
    readonly period: 'day' | 'month'
    /** the amount, in the currency of the prices */
    readonly amount: string | number
    /** the percentages that send an alert; "" for none */
    readonly alertAt?: readonly string[] | null
    /** reject no messages: only count and send alerts */
    readonly stops?: boolean | null
  }
  /** reject no messages because of a budget for a time */
  readonly 'budget.lift': {
    /** server, brand:SLUG, app:APPID, country:CC, country:* or way:WAY */
    readonly scope: string
    /** the messages that the budget counts */
    readonly of?: 'all' | 'codes' | 'notifications' | null
    /** such as 30m, 12h or 7d, at most 366d; 0m ends the lift */
    readonly duration: string
  }
  /** remove the budget of a scope */
  readonly 'budget.remove': {
    /** server, brand:SLUG, app:APPID, country:CC, country:* or way:WAY */
    readonly scope: string
    /** the messages that the budget counts */
    readonly of?: 'all' | 'codes' | 'notifications' | null
  }
  /** store the prices of a CSV file */
  readonly 'price.import': {
    /** the CSV file with the header row prefix,currency,price or prefix,currency,price,provider */
    readonly prices: string
  }
  /** create or replace the rule of a country or number range */
  readonly 'destination.set': {
    /** a country (GB), a prefix (+4479), or * for all others */
    readonly rule: string
    /** what otpost does with SMS to these numbers; monitor only records what block would reject */
    readonly action: 'allow' | 'monitor' | 'block'
    /** only for SMS of this brand */
    readonly brand?: string | null
    /** only these providers of SMS_PLAIN and SMS_TEMPLATE, tried in this order */
    readonly providers?: readonly string[] | null
    /** the sender: a number with +, a short code or a sender id */
    readonly sender?: string | null
    /** the route of codes and templates */
    readonly route?: 'plain' | 'template' | null
    /** also for the territories in its numbering plan */
    readonly isGroup?: boolean | null
  }
  /** remove the rule of a country or number range */
  readonly 'destination.remove': {
    /** a country (GB), a prefix (+4479), or * for all others */
    readonly rule: string
    /** the rule of this brand */
    readonly brand?: string | null
    /** also for the territories in its numbering plan */
    readonly isGroup?: boolean | null
  }
  /** send no SMS by a provider for a time */
  readonly 'provider.pause': {
    /** the name of the provider in SMS_PLAIN or SMS_TEMPLATE */
    readonly name: string
    /** how long, such as 30m, 1h or 7d; at most 366d */
    readonly duration: string
  }
  /** use a paused provider again */
  readonly 'provider.resume': {
    /** the name of the provider in SMS_PLAIN or SMS_TEMPLATE */
    readonly name: string
  }
  /** change the mode of the guard */
  readonly 'guard.mode': {
    /** what the guard does with codes that it finds too many */
    readonly mode: 'deny' | 'record' | 'off'
    /** how long, such as 30m, 12h or 7d; at most 366d. Then the previous mode applies again */
    readonly duration?: string | null
  }
  /** send codes to these numbers without counting them in the guard */
  readonly 'guard.allow': {
    /** the first digits with the country code, such as +3712000 */
    readonly prefix: string
    /** how long, such as 30m, 12h or 7d; at most 366d */
    readonly duration?: string | null
  }
  /** deny codes to these numbers, also in mode record */
  readonly 'guard.block': {
    /** the first digits with the country code, such as +3712000 */
    readonly prefix: string
    /** how long, such as 30m, 12h or 7d; at most 366d */
    readonly duration?: string | null
  }
  /** end the allow or block of a prefix, also one of the guard itself */
  readonly 'guard.remove': {
    /** the first digits with the country code, such as +3712000 */
    readonly prefix: string
  }
  /** send the failed jobs of a request again, for one hour */
  readonly 'queue.retry': {
    /** the requestId of the 202 answer */
    readonly requestId: string
    /** also jobs with an unknown result, whose recipients may get two messages */
    readonly unknown?: boolean | null
  }
  /** cancel the queued jobs of a request */
  readonly 'queue.cancel': {
    /** the requestId of the 202 answer */
    readonly requestId: string
  }
  /** note that you know of an incident */
  readonly 'incident.acknowledge': {
    /** the name of the incident, such as "provider twilio" or sms */
    readonly about: string
  }
  /** set from when on something is an incident */
  readonly 'incident.set': {
    /** the share of messages that fail */
    readonly failedPercent?: string | number | null
    /** the minutes without calls at a usual hour; 0: never */
    readonly silentMinutes?: string | number | null
  }
  /** create a review number (at most 10) and print its fixed code once */
  readonly 'review-number.add': {
    /** a phone number as in API requests */
    readonly phone: string
    /** the brand whose codes it is for */
    readonly brand: string
    /** the last day in UTC, such as 2026-11-21; at most 90 days from today */
    readonly until: string
  }
  /** remove a review number */
  readonly 'review-number.remove': {
    /** a phone number as in API requests */
    readonly phone?: string | null
    /** its brand */
    readonly brand: string
  }
  /** add a relay, and print its URL and its secret */
  readonly 'relay.add': {
    /** the name in its URL: lower-case letters, digits and hyphens */
    readonly name: string
    /** the identity system */
    readonly kind:
      | 'supabase'
      | 'zitadel'
      | 'logto'
      | 'kratos'
      | 'authgear'
      | 'authentik'
      | 'keycloak'
      | 'twilio'
      | 'camara'
    /** the brand whose text and providers send the codes */
    readonly brand: string
    /** the app whose limits, budget and scope apply; none for no app */
    readonly app?: string | null
    /** the key that the identity system made (zitadel, authgear) */
    readonly secret?: string | null
    /** the lifetime of its codes, for the text; 1 to 60 */
    readonly minutes?: string | number | null
  }
  /** change the brand, the app or the minutes of a relay; the rest stays, also its URL and secret */
  readonly 'relay.set': {
    /** the name of the relay */
    readonly name: string
    /** the brand whose text and providers send the codes */
    readonly brand?: string | null
    /** the app whose limits, budget and scope apply; none for no app */
    readonly app?: string | null
    /** the lifetime of its codes, for the text; 1 to 60 */
    readonly minutes?: string | number | null
  }
  /** remove a relay */
  readonly 'relay.remove': {
    /** the name of the relay */
    readonly name: string
  }
  /** create an account, and print the link that sets it up within 72 hours */
  readonly 'admin.operator.invite': {
    /** the e-mail address of the person */
    readonly email: string
    /** the role */
    readonly role: 'viewer' | 'operator' | 'owner'
  }
  /** change the role of an account */
  readonly 'admin.operator.role': {
    /** the e-mail address of the person */
    readonly email: string
    /** the role */
    readonly role: 'viewer' | 'operator' | 'owner'
  }
  /** remove the password and second factors, and print a link that sets them up again */
  readonly 'admin.operator.reset': {
    /** the e-mail address of the person */
    readonly email: string
  }
  /** remove an account and end its sessions */
  readonly 'admin.operator.remove': {
    /** the e-mail address of the person */
    readonly email: string
  }
  /** create a token of the management API, and print it */
  readonly 'admin.token.create': {
    /** the name of the token in the audit log */
    readonly name: string
    /** what the token may do: viewer, operator, owner, as accounts of the console */
    readonly role: 'viewer' | 'operator' | 'owner'
    /** how long the token is valid, such as 30m, 12h or 90d; without it, until it is revoked */
    readonly duration?: string | null
  }
  /** revoke a token of the management API */
  readonly 'admin.token.revoke': {
    /** the name of the token */
    readonly name: string
  }
}
