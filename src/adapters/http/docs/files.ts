import { PageFiles } from '../../pages/static.ts'
import docsCss from './docs.css' with { type: 'text' }

export const docsFiles = new PageFiles('/docs', { 'docs.css': docsCss })
