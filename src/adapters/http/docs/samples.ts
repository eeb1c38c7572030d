import curlPage from '../../../../docs/api/curl.md' with { type: 'text' }
import goPage from '../../../../docs/api/go.md' with { type: 'text' }
import javaPage from '../../../../docs/api/java.md' with { type: 'text' }
import nodePage from '../../../../docs/api/node.md' with { type: 'text' }
import phpPage from '../../../../docs/api/php.md' with { type: 'text' }
import pythonPage from '../../../../docs/api/python.md' with { type: 'text' }

/** The first sample of each page, which a test runs: it sends a code and verifies it. */
export const samples: readonly { readonly language: string; readonly code: string }[] = Object.entries({
  curl: curlPage,
  Node: nodePage,
  Python: pythonPage,
  PHP: phpPage,
  Go: goPage,
  Java: javaPage,
}).map(([language, page]) => ({ language, code: /```\w+\n(.*?)```/s.exec(page)?.[1]?.trimEnd() ?? '' }))
