/** Words and patterns that texts and comments of this project do not use, and what they use instead. */
export interface Term {
  readonly pattern: RegExp
  readonly use: string
}

function term(pattern: RegExp, use: string): Term {
  return { pattern: new RegExp(pattern.source, `${pattern.flags}g`), use }
}

export const terms: readonly Term[] = [
  // Terms of the field.
  term(/\bstor(?:y|ies)\b/i, '"request trace"'),
  term(/\bjournals?\b/i, '"event log", or "delivery log" for attempts'),
  term(/\breceipts?\b/i, '"delivery report"'),
  term(/\bvendors?\b/i, '"provider"'),
  term(
    /\b(?:provider|circuit|breaker|which|it) (?:rests|works again)\b|\bpassed over\b/i,
    '"circuit open", "skipped"',
  ),
  term(/\b(?:hand(?:s|ed|ing)? over)\b/i, '"accepted by the provider", or "zero-downtime restart"'),
  term(/\bunclear\b|\bleft open\b/i, '"unknown (timed out)"'),
  term(/\bretryable\b/i, '"temporary failure"'),
  term(/\blimited now\b|\bfree in\b/i, '"active rate limits", "resets in"'),
  term(/\bfolded back\b/i, '"checkpointed"'),
  term(/\bformer (?:secrets?|keys?)\b/i, '"previous secret key"'),
  term(/\b9 of 10\b/, '"p90"'),
  term(/\bat night\b/i, '"Runbook"'),
  term(/\bledgers?\b/i, '"counters" or "recipient state"'),
  term(/\btall(?:y|ies)\b/i, '"statistics" or "counter"'),
  term(/\bbooks?\b/i, '"store" or "context"'),
  term(
    /\b(?:make|issue|making|issuing|makes|issues|made|issued) (?:an?|the|its|their|new|another) (?:new )?(?:app|application|API key|key)\b/i,
    '"create an app", "create an API key"',
  ),
  term(
    /(?<!\b(?:IP|IPv4|IPv6|e-mail|email|mail|network|loopback|socket|listening|contact|sender|recipient|MAC|from|link-local) )\b(?<!-)address(?:es)?\b(?!ed)/i,
    '"URL", "IP address" or "e-mail address"',
  ),
  // Verbs of another kind of text.
  term(/\b(?:stands|lies)\b/i, '"is"'),
  term(/\btells?\b/i, '"reports", "returns" or "says"'),
  term(/\b(?:goes|go|went|going) by\b/i, '"uses" or "follows"'),
  term(/\bcomes? by\b/i, '"gets" or "arrives through"'),
  term(/\bholds? (?:for|from|at|under|with|true|as)\b/i, '"applies" or "is true"'),
  term(/\b(?:is|are) over\b/i, '"has ended" or "has expired"'),
  term(/\bha(?:s|ve|d) (?:no|a) say\b/i, '"is ignored" or "takes precedence"'),
  term(/\b(?:is|are|was|were|be|been) (?:asked|told|taken|made)\b/i, 'the active verb, with its subject'),
  term(/\b(?:gets?|got) back\b/i, '"receives"'),
  term(/\blets? through\b/i, '"allows" or "accepts"'),
  term(/\bgoes before\b/i, '"takes precedence over"'),
  // Old words, and persons that are not named.
  term(/\b(?:who|what|which)ever\b/i, 'the role or thing: "operators", "the caller", "each"'),
  term(
    /\b(?:thus|lest|whom|thereof|beforehand|hitherto|hence|therein|whereby|upon)\b/i,
    'a present-day word',
  ),
  term(/\bmend\b/i, '"fix"'),
  term(/\bnobody\b/i, 'the role: "no operator", "no other client"'),
]

/** A term that a text may have after all. */
export interface Exception {
  /** The beginning of a path. */
  readonly path: string
  readonly pattern: RegExp
  readonly why: string
}

export const exceptions: readonly Exception[] = [
  { path: '', pattern: /\bjournal[ _-]mode\b/, why: 'a setting of SQLite' },
  { path: 'test/', pattern: /--link-journal\b/, why: 'an option of systemd' },
  { path: 'test/', pattern: /\/callbacks\//, why: 'a URL of the contract' },
  { path: 'deploy/', pattern: /\/callbacks\b|\breceipts\|/, why: 'a URL of the contract' },
  {
    path: 'src/adapters/crypto/secrets.ts',
    pattern: /otpost callback v1/,
    why: 'the HKDF label of stored tokens',
  },
  { path: 'src/adapters/', pattern: /'retryable'/, why: 'a value of database columns' },
  { path: 'test/', pattern: /\bretryable(?=, outbox|: too many)/, why: 'a value of database columns' },
  { path: 'deploy/grafana/', pattern: /\bretryable(?=: a temporary failure)/, why: 'a label of a metric' },
  {
    path: 'test/adapters/vonage.test.ts',
    pattern: /Understanding the delivery receipt/,
    why: 'a title of Vonage',
  },
  {
    path: 'test/upgrade.system.ts',
    pattern: /\b(?:story|stories|tallies)\b/,
    why: 'tables and columns of earlier schemas',
  },
  {
    path: 'test/store/postgres-upgrade.system.ts',
    pattern: /\bledgers\b/,
    why: 'a table of an earlier schema',
  },
]
