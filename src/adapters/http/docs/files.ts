import { PageFiles } from '../../pages/static.ts'
import docsCss from './docs.css' with { type: 'text' }
import docsJs from './docs.js' with { type: 'text' }

export const docsFiles = new PageFiles('/docs', { 'docs.css': docsCss, 'docs.js': docsJs })
