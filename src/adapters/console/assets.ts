import uplotJs from 'uplot/dist/uPlot.esm.js' with { type: 'text' }
import uplotCss from 'uplot/dist/uPlot.min.css' with { type: 'text' }
import { PageFiles } from '../pages/static.ts'
import chartsJs from './charts.js' with { type: 'text' }
import consoleCss from './console.css' with { type: 'text' }
import consoleJs from './console.js' with { type: 'text' }
import linkJs from './link.js' with { type: 'text' }
import passkeyJs from './passkey.js' with { type: 'text' }
import previewJs from './preview.js' with { type: 'text' }

/** They need no session. */
export const consoleFiles = new PageFiles('/admin', {
  'console.css': consoleCss,
  'console.js': consoleJs,
  'charts.js': chartsJs,
  'link.js': linkJs,
  'passkey.js': passkeyJs,
  'preview.js': previewJs,
  'uplot.js': uplotJs,
  'uplot.css': uplotCss,
})
