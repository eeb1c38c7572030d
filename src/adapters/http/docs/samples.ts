import csharp from '../../../../docs/api/Send.cs' with { type: 'text' }
import java from '../../../../docs/api/SendAndVerify.java' with { type: 'text' }
import go from '../../../../docs/api/send.go' with { type: 'text' }
import node from '../../../../docs/api/send.mjs' with { type: 'text' }
import php from '../../../../docs/api/send.php' with { type: 'text' }
import python from '../../../../docs/api/send.py' with { type: 'text' }
import curl from '../../../../docs/api/send.sh' with { type: 'text' }

/** Programs that send a code and verify it. */
export const samples: readonly { readonly language: string; readonly code: string }[] = Object.entries({
  curl,
  Node: node,
  Python: python,
  PHP: php,
  Go: go,
  Java: java,
  'C#': csharp,
}).map(([language, text]) => ({ language, code: text.trimEnd() }))
