import uplotPath from 'uplot/dist/uPlot.esm.js' with { type: 'file' }
import uplotCssPath from 'uplot/dist/uPlot.min.css' with { type: 'file' }
import { pageFiles, type StaticFile } from '../pages/static.ts'
import chartsJs from './charts.js' with { type: 'text' }
import consoleCss from './console.css' with { type: 'text' }
import consoleJs from './console.js' with { type: 'text' }
import linkJs from './link.js' with { type: 'text' }
import passkeyJs from './passkey.js' with { type: 'text' }
import previewJs from './preview.js' with { type: 'text' }

/** By path. They need no session. */
export const consoleFiles: Readonly<Record<string, StaticFile>> = {
  ...pageFiles('/admin'),
  '/admin/console.css': { type: 'text/css', content: consoleCss },
  '/admin/console.js': { type: 'text/javascript', content: consoleJs },
  '/admin/charts.js': { type: 'text/javascript', content: chartsJs },
  '/admin/link.js': { type: 'text/javascript', content: linkJs },
  '/admin/passkey.js': { type: 'text/javascript', content: passkeyJs },
  '/admin/preview.js': { type: 'text/javascript', content: previewJs },
  '/admin/uplot.js': { type: 'text/javascript', content: Bun.file(uplotPath) },
  '/admin/uplot.css': { type: 'text/css', content: Bun.file(uplotCssPath) },
}
