/** @jsxImportSource preact */

import { renderToString } from 'preact-render-to-string'
import { type Actor, type AuditRecord, actorName } from '../../../domain/ground/audit.ts'
import type { Channel } from '../../../domain/ground/contact.ts'
import { inWords } from '../../../domain/operator/texts.ts'
import { type BrandWithTexts, ownTemplateKeys } from '../../../domain/texts/brand.ts'
import { type BrandText, registrationKeyOf, type TextTarget } from '../../../domain/texts/brand-texts.ts'
import type { DraftPreview, TextParts } from '../../../domain/texts/drafts.ts'
import { isOtpKey, otpLanguages } from '../../../domain/texts/otp-texts.ts'
import { templateKeys } from '../../../domain/texts/templates.ts'
import { Badge, Button, Field, FieldGroup, rich, Select, Time } from '../../pages/components.tsx'
import { Changes } from '../audit/page.tsx'
import { Card, consolePage, end, Form, FormLink, Notice, Problem, Problems, Table } from '../components.tsx'
import type { PageContext } from '../page-context.ts'
import { pageWords } from '../references.ts'
import { testPath } from '../test-send/page.tsx'
import { PreviewMessage, PreviewSlot, pathOf, Registration, SampleValues } from './messages.tsx'

/** A text that the brand sends. */
export interface TextRow extends TextTarget {
  readonly text: string
  /** Null: built in. */
  readonly own: BrandText | null
  /** Who set it. Null: not among the latest audit entries. */
  readonly actor: Actor | null
}

export interface TextsModel {
  readonly brand: BrandWithTexts
  readonly rows: readonly TextRow[]
  /** Of a text in another language. `template` is a key and a channel. */
  readonly form: { readonly template: string; readonly lang: string }
  readonly problem: string | null
}

/** As the form has it. */
export interface TextForm extends Omit<TextTarget, 'channel'>, TextParts {
  readonly channel: Channel
  /** `name:type:max`, one per line. */
  readonly variables: string
}

export interface TextModel {
  readonly brand: BrandWithTexts
  /** The key and the language can be entered. */
  readonly isNewTemplate: boolean
  readonly form: TextForm
  /** Null: none is stored. */
  readonly own: BrandText | null
  /** Null: the template is the brand's own. */
  readonly builtIn: TextParts | null
  readonly placeholders: readonly string[]
  readonly preview: DraftPreview
  /** Newest first. */
  readonly history: readonly AuditRecord[]
  readonly providers: readonly string[]
  readonly problems: readonly string[]
}

export function textsPage(pageContext: PageContext, model: TextsModel): string {
  const { brand, rows, form, problem } = model
  const path = textsPath(brand)
  return consolePage(
    pageContext,
    {
      title: 'Texts',
      section: 'brands',
      parent: { title: brand.displayName, href: pathOf(brand) },
      actions: (
        <FormLink href={`${path}/new`} kind="primary">
          New template
        </FormLink>
      ),
    },
    <>
      <Card hint="In each language, a text of the brand takes precedence over the built-in text.">
        <Table
          caption="Texts"
          columns={['Template', 'Language', 'Text', 'Source']}
          rows={rows.map((row) => textCells(brand, row))}
          empty="None."
        />
      </Card>
      <Card
        title="Another language"
        hint={`Texts of codes are built in for ${otpLanguages.length} languages. The language is a BCP 47 tag, such as hi or pt-BR.`}
      >
        <Problem text={problem} />
        <Form action={`${path}/open`} class="inline">
          <Select
            label="Template"
            name="template"
            value={form.template}
            options={Object.fromEntries(
              [...templateKeys, ...ownTemplateKeys(brand)].flatMap((key) => [
                [`${key} SMS`, key],
                ...(isOtpKey(key) ? [[`${key} EMAIL`, `${key} e-mail`] as const] : []),
              ]),
            )}
          />
          <Field
            label="Language"
            name="lang"
            required
            isCode
            maxLength={64}
            value={form.lang}
            placeholder="hi"
          />
          <Button>Write</Button>
        </Form>
      </Card>
    </>,
  )
}

function textCells(brand: BrandWithTexts, row: TextRow) {
  const { templateKey, channel, lang, text, own, actor } = row
  const variables = brand.texts.variables.get(templateKey) ?? []
  return [
    <a key="template" class="entry" href={textPath(brand, row)}>
      <span class="entry-name breaks">
        <code>{templateKey}</code>
        {channel === 'EMAIL' && ' e-mail'}
        <span class="sr-only"> in {languageName(lang)}</span>
      </span>
      {variables.length > 0 && <code class="breaks">{variables.map(inWords).join(' ')}</code>}
    </a>,
    <span key="lang" class="two-lines">
      {languageName(lang)}
      <small>
        <code>{lang}</code>
      </small>
    </span>,
    <span key="text" class="clip breaks" lang={lang} dir="auto">
      {text}
    </span>,
    own === null ? (
      <Badge tone="quiet">built in</Badge>
    ) : (
      <span key="source" class="two-lines">
        <Badge tone="good">version {own.version}</Badge>
        <small>
          <Time at={own.updatedAt} />
          {actor && <> by {actorName(actor)}</>}
        </small>
      </span>
    ),
  ]
}

export function textPage(pageContext: PageContext, model: TextModel): string {
  const { brand, form, own, builtIn, isNewTemplate, problems } = model
  const { templateKey, channel, lang } = form
  const isDisabled = builtIn === null && own !== null && !brand.notifyTemplates.includes(templateKey)
  return consolePage(
    pageContext,
    {
      title: isNewTemplate ? 'New template' : `${kindOf(form)} in ${languageName(lang)}`,
      section: 'brands',
      parent: { title: `Texts of ${brand.displayName}`, href: textsPath(brand) },
      actions: !isNewTemplate && (
        <>
          {own ? <Badge tone="good">version {own.version}</Badge> : <Badge tone="quiet">built in</Badge>}
          <FormLink href={testPath({ brand: brand.slug, template: templateKey, lang })}>Send a test</FormLink>
        </>
      ),
      scripts: ['preview.js'],
    },
    <>
      <Problems list={problems} />
      {isDisabled && (
        <Notice tone="warn">
          Apps cannot use {templateKey} yet. <a href={pathOf(brand)}>Enable it for {brand.displayName}</a>
        </Notice>
      )}
      <div class="columns loose">
        <div class="stack">
          <Card
            hint={
              isNewTemplate
                ? 'For `/notify`. The template exists as long as the brand has a text of it.'
                : own
                  ? 'otpost sends it as it is, with a value for each placeholder.'
                  : 'This is the built-in text. Save it to store a text of the brand.'
            }
          >
            <Editor model={model} />
          </Card>
          {!isNewTemplate && <StoredText model={model} />}
        </div>
        <div class="stack beside">
          <Card title="Preview" hint="Of the text in this form, saved or not.">
            <div class="tryout stacked" data-preview={templateKey}>
              <PreviewSlot>
                <DraftReading model={model} />
              </PreviewSlot>
              {channel === 'EMAIL' && <MailFrame brand={brand} />}
              {channel === 'SMS' && !isNewTemplate && (
                <SampleValues of={templateKey} variables={sampleVariables(model)} />
              )}
            </div>
          </Card>
        </div>
      </div>
      {!isNewTemplate && <History records={model.history} />}
    </>,
  )
}

function Editor({ model }: { model: TextModel }) {
  const { brand, form, own, builtIn, placeholders, isNewTemplate } = model
  const { templateKey, channel, lang } = form
  const isMail = channel === 'EMAIL'
  const target = isNewTemplate ? { channel } : { templateKey, channel, lang }
  const was = (brand.texts.variables.get(templateKey) ?? []).map(inWords).join('\n')
  return (
    <Form
      action={textsPath(brand)}
      id="text"
      previewAt={`${textsPath(brand)}/preview`}
      hidden={{ ...target, ...seen(own), was, ...(isNewTemplate && { isNew: '1' }) }}
      submit="Save"
    >
      {isNewTemplate && (
        <>
          <Field
            label="Key"
            name="templateKey"
            value={templateKey}
            required
            isCode
            maxLength={40}
            placeholder="TABLE_READY"
            hint="Apps send it as `templateKey`. A capital letter, then A-Z, 0-9 and _."
          />
          <Field label="Language" name="lang" value={lang} required isCode maxLength={64} placeholder="hi" />
        </>
      )}
      {builtIn === null && (
        <Field
          label="Variables"
          name="variables"
          value={form.variables}
          rows={3}
          isCode
          placeholder="guest:text:30"
          hint="One `name:type:max` per line. Types: text, number, date, datetime, url. max is the greatest length, of a number the greatest value. All languages share the variables."
        />
      )}
      {isMail && (
        <Field label="Subject" name="subject" value={form.subject} lang={lang} required maxLength={255} />
      )}
      <Field
        label="Text"
        name="text"
        value={form.text}
        lang={lang}
        required
        rows={isMail ? 10 : 6}
        maxLength={1000}
      />
      {isMail && (
        <Field
          label="HTML"
          name="html"
          value={form.html}
          rows={8}
          isCode
          maxLength={20_000}
          hint="Optional. Without it, otpost makes the HTML from the text, with the logo and the color of the brand."
        />
      )}
      <FieldGroup legend="Placeholders">
        <ul class="chips" data-placeholders>
          {placeholders.map((name) => (
            <li key={name}>
              <code>{`{{${name}}}`}</code>
            </li>
          ))}
        </ul>
        {builtIn === null && <p class="hint">Each variable is a placeholder.</p>}
      </FieldGroup>
    </Form>
  )
}

/** The stored text that the operator sees; a change of it by another operator is not overwritten. */
function seen(own: TextModel['own']) {
  return { version: String(own?.version ?? 0), updatedAt: String(own?.updatedAt ?? '') }
}

/** For preview.js. */
export function draftFragment(model: Pick<TextModel, 'preview'>): string {
  return renderToString(<DraftReading model={model} />)
}

function DraftReading({ model: { preview } }: { model: Pick<TextModel, 'preview'> }) {
  const { problems, sms, mail, findings } = preview
  if (mail) return <MailReading mail={mail} />
  if (sms) {
    return (
      <PreviewMessage preview={sms}>
        <Findings list={findings} />
      </PreviewMessage>
    )
  }
  return (
    <div class="reading" data-summary={problems.join(' ')}>
      <ul class="unreadable problems">
        {problems.map((problem) => (
          <li key={problem}>{problem}</li>
        ))}
      </ul>
    </div>
  )
}

/** preview.js shows the HTML while the operator types. Without it, the button does. */
function MailFrame({ brand }: Pick<TextModel, 'brand'>) {
  return (
    <>
      <button
        type="submit"
        class="button plain"
        form="text"
        formaction={`${textsPath(brand)}/mail`}
        formtarget="mail"
        formnovalidate
      >
        Show the HTML
      </button>
      <iframe name="mail" class="mail" sandbox="" referrerpolicy="no-referrer" title="HTML of the e-mail" />
    </>
  )
}

function MailReading({ mail }: { mail: NonNullable<DraftPreview['mail']> }) {
  return (
    <div class="reading" data-summary={mail.subject} data-is-mail>
      <p class="mail-subject">
        <bdi>{mail.subject}</bdi>
      </p>
      <details class="fold">
        <summary>Text part</summary>
        <p class="text" dir="auto">
          {mail.text}
        </p>
      </details>
    </div>
  )
}

/** Null: the brand does not use the registered-template route. */
function Findings({ list }: { list: DraftPreview['findings'] }) {
  if (list === null) return null
  return (
    <section class="findings" aria-label="DLT checks">
      <h3>DLT checks</h3>
      {list.length === 0 && (
        <p class="hint">No findings. Carriers compare the SMS with the registered text.</p>
      )}
      <ul>
        {list.map(({ rule, level, message, fix }) => (
          <li key={rule + message}>
            <Badge tone={level === 'error' ? 'bad' : 'warn'}>{rule}</Badge>
            <p>{rich(message)}</p>
            <p class="hint">{rich(pageWords(fix))}</p>
          </li>
        ))}
      </ul>
    </section>
  )
}

/** Without `lang`: the request's language is that of the text. */
function sampleVariables({ preview: { sms }, placeholders }: TextModel) {
  return (sms?.variables ?? []).filter(({ name }) => placeholders.includes(name))
}

function StoredText({ model }: { model: TextModel }) {
  const { brand, form, own, builtIn, providers } = model
  const { templateKey, channel, lang } = form
  const registration = registrationKeyOf(templateKey, lang === brand.lang ? undefined : lang)
  return (
    <>
      {channel === 'SMS' && (
        <Card title="Registered template" hint="For DLT in India and for providers’ own template IDs.">
          <Registration brand={brand} of={registration} providers={providers} />
        </Card>
      )}
      {own && (
        <Card title={builtIn ? 'Built-in text' : 'Remove'}>
          {builtIn ? (
            <p class="text" lang={lang} dir="auto">
              {builtIn.text}
            </p>
          ) : (
            <p class="hint">The template exists as long as the brand has a text of it.</p>
          )}
          <Form
            action={textsPath(brand)}
            hidden={{ templateKey, channel, lang, ...seen(own), remove: '1' }}
            submit={builtIn ? 'Back to the built-in text' : 'Remove this text'}
            kind="danger"
            confirm={`Remove version ${own.version} of ${kindOf(form)} in ${languageName(lang)}?${builtIn ? ' The built-in text is used again.' : ''}`}
          />
        </Card>
      )}
    </>
  )
}

function History({ records }: { records: readonly AuditRecord[] }) {
  return (
    <Card title="History">
      <Table
        caption="History"
        columns={['Version', 'Change', 'Operator', end('Time')]}
        rows={records.map(({ action, details, actor, at }) => {
          const { version = '', template: _, lang: __, channel: ___, ...changes } = details
          return [
            action === 'text.removed' ? `${version}, removed` : version,
            <Changes key="changes" changes={changes} />,
            actorName(actor),
            <Time key="time" at={at} />,
          ]
        })}
        empty="No changes."
      />
    </Card>
  )
}

function kindOf({ templateKey, channel }: Pick<TextTarget, 'templateKey' | 'channel'>): string {
  return channel === 'EMAIL' ? `${templateKey} e-mail` : templateKey
}

const languageNames = new Intl.DisplayNames(['en'], { type: 'language', fallback: 'code' })

function languageName(lang: string): string {
  try {
    return languageNames.of(lang) ?? lang
  } catch {
    return lang
  }
}

export function textsPath(brand: Pick<BrandWithTexts, 'slug'>): string {
  return `${pathOf(brand)}/texts`
}

export function textPath(
  brand: Pick<BrandWithTexts, 'slug'>,
  { templateKey, channel, lang }: TextTarget,
): string {
  const parts = [templateKey, channel.toLowerCase(), lang].map(encodeURIComponent)
  return `${textsPath(brand)}/${parts.join('/')}`
}
