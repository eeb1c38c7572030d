import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import packageJson from '../package.json'

// Builds the Helm chart: the manifests of deploy/kubernetes/base, with the values of deploy/helm/values.yaml in place of theirs.

const root = join(import.meta.dir, '..')
const { name, version, license, description } = packageJson

/** What becomes of the manifests. Each pattern must match. */
const edits: readonly (readonly [RegExp, string])[] = [
  // Helm creates the namespace, with --create-namespace.
  [/^(?:#.*\n)+apiVersion: v1\nkind: Namespace\n(?:.*\n)*?---\n/, ''],
  [/\n {2}namespace: otpost$/gm, ''],
  [/# Create this Secret.*\n/, '{{- if not .Values.existingSecret }}\n'],
  [
    /stringData:\n(?: {2}.*\n)+---\n/,
    'stringData:\n  {{- toYaml .Values.secrets | nindent 2 }}\n---\n{{- end }}\n',
  ],
  [/(?<=name: otpost\ndata:\n)(?: {2}.*\n)+/, '  {{- toYaml .Values.settings | nindent 2 }}\n'],
  [/(?<=otpost\.yaml: \|\n)(?: {4}.*\n)+/, '    {{- toYaml .Values.configuration | nindent 4 }}\n'],
  [/# The server applies this file.*\n/, ''],
  [/(?<=secretRef:\n\s+name: )otpost/, '{{ .Values.existingSecret | default "otpost" }}'],
  [/(?<=image: ).*/, '{{ .Values.image }}'],
  [/(?<=storage: ).*/, '{{ .Values.storage }}'],
  // Changed values restart the server.
  [
    /( +)annotations:\n/,
    '$&$1  checksum/values: {{ list .Values.settings .Values.secrets .Values.configuration | toJson | sha256sum }}\n',
  ],
]

/** Creates the folder `otpost` of the chart below this one. */
export function assembleChart(folder: string): void {
  const chart = join(folder, name)
  mkdirSync(join(chart, 'templates'), { recursive: true })
  cpSync(join(root, 'deploy/helm/values.yaml'), join(chart, 'values.yaml'))
  const about = { apiVersion: 'v2', name, description, type: 'application', version, appVersion: version }
  const annotations = { 'artifacthub.io/license': license }
  writeFileSync(join(chart, 'Chart.yaml'), `${JSON.stringify({ ...about, annotations }, null, 2)}\n`)
  let text = readFileSync(join(root, 'deploy/kubernetes/base/otpost.yml'), 'utf8')
  for (const [pattern, replacement] of edits) {
    if (text.search(pattern) === -1) throw new Error(`deploy/kubernetes/base/otpost.yml has no ${pattern}`)
    text = text.replace(pattern, replacement)
  }
  writeFileSync(join(chart, 'templates/otpost.yaml'), text)
}
