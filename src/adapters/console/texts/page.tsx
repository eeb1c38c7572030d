/** @jsxImportSource preact */

import { renderToString } from 'preact-render-to-string'
import { actorName } from '../../../domain/ground/audit.ts'
import type { Channel } from '../../../domain/ground/contact.ts'
import { counted } from '../../../domain/ground/format.ts'
import { canonicalTag, directionOf, wrongTag } from '../../../domain/ground/languages.ts'
import type { TextVersion } from '../../../domain/operator/text-versions.ts'
import { inWords, textDiscard, textRemove, textRestore } from '../../../domain/operator/texts.ts'
import type { BrandWithTexts } from '../../../domain/texts/brand.ts'
import {
  type BrandDraft,
  type BrandText,
  registrationKeyOf,
  type TextTarget,
} from '../../../domain/texts/brand-texts.ts'
import type { DraftPreview, TextParts } from '../../../domain/texts/drafts.ts'
import { otpLanguages } from '../../../domain/texts/otp-texts.ts'
import {
  knownLanguages,
  languageName,
  type TextMatrix,
  type TextState,
} from '../../../domain/texts/text-matrix.ts'
import { Badge, Button, Field, FieldGroup, rich, Select, Time } from '../../pages/components.tsx'
import { ActionButton } from '../action-form.tsx'
import { actions, Card, consolePage, end, Form, FormLink, Notice, Problem, Table } from '../components.tsx'
import type { PageContext } from '../page-context.ts'
import { pageWords } from '../references.ts'
import { testPath } from '../test-send/page.tsx'
import { type TextChange, textDifferences } from './difference.ts'
import { PreviewMessage, PreviewSlot, pathOf, Registration, SampleValues } from './messages.tsx'

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
  /** What is published. */
  readonly own: BrandText | null
  readonly draft: BrandDraft | null
  /** Null: the template is the brand's own. */
  readonly builtIn: TextParts | null
  readonly placeholders: readonly string[]
  readonly reading: DraftReadingModel
  /** Newest first. */
  readonly versions: readonly TextVersion[]
}

/** The text in the form, beside what is published. */
export interface DraftReadingModel {
  readonly preview: DraftPreview
  readonly lang: string
  /** By part. */
  readonly differences: Readonly<Record<string, readonly TextChange[]>>
  /** Null: it is no SMS, or nothing is published. */
  readonly cost: string | null
}

/** @param asked the tag of one more language, which may be wrong */
export function textsPage(
  pageContext: PageContext,
  brand: BrandWithTexts,
  { languages, rows }: TextMatrix,
  asked: string,
): string {
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
      <Card hint="A text of the brand replaces the built-in one in its language. A draft is sent only by test messages.">
        <Table
          caption="Texts by template and language"
          columns={['Template', ...languages.map(languageName)]}
          rows={rows.map((states) => [
            <TemplateName brand={brand} of={states} />,
            ...states.map((state) => <StateLink key={state.lang} brand={brand} state={state} />),
          ])}
          empty="None."
        />
      </Card>
      <Card
        title="Another language"
        hint={`Texts of codes are built in for ${otpLanguages.length} languages.`}
      >
        <Problem text={asked === '' || canonicalTag(asked) ? null : wrongTag} />
        <form method="get" action={path} class="form inline" autocomplete="off">
          <Select
            label="Language"
            name="lang"
            value={asked}
            options={{
              '': 'Another tag:',
              ...Object.fromEntries(
                knownLanguages(brand)
                  .map((tag) => [tag, `${languageName(tag)} (${tag})`] as const)
                  .sort(([, one], [, other]) => one.localeCompare(other)),
              ),
            }}
          />
          <Field
            label="Tag (BCP 47)"
            id="field-tag"
            name="lang"
            isCode
            maxLength={64}
            value={canonicalTag(asked) ? '' : asked}
            placeholder="pt-BR"
          />
          <Button>Show</Button>
        </form>
      </Card>
    </>,
  )
}

function TemplateName({ brand, of: [state] }: { brand: BrandWithTexts; of: readonly TextState[] }) {
  if (!state) return null
  const variables = brand.texts.variables.get(state.templateKey) ?? []
  return (
    <span class="two-lines">
      <span class="breaks">
        <code>{state.templateKey}</code>
        {state.channel === 'EMAIL' && ' e-mail'}
      </span>
      {variables.length > 0 && <code class="breaks hint">{variables.map(inWords).join(' ')}</code>}
    </span>
  )
}

function StateLink({ brand, state }: { brand: BrandWithTexts; state: TextState }) {
  const { own, draft, usedLang, lang, problems } = state
  return (
    <a class="entry states" href={textPath(brand, state)}>
      <span class="sr-only">
        {kindOf(state)} in {languageName(lang)}:{' '}
      </span>
      {own ? (
        <>
          <Badge tone="good">version {own.version}</Badge>
          <small>
            <Time at={own.updatedAt} />
          </small>
        </>
      ) : usedLang === null ? (
        <Badge tone="quiet">no text</Badge>
      ) : (
        <Badge tone="quiet">{usedLang === lang ? 'built in' : `as ${languageName(usedLang)}`}</Badge>
      )}
      {draft && <Badge tone="sent">draft</Badge>}
      {problems.length > 0 && <Badge tone="bad">{counted(problems.length, 'problem')}</Badge>}
    </a>
  )
}

export function textPage(pageContext: PageContext, model: TextModel): string {
  const { brand, form, own, draft, builtIn, isNewTemplate } = model
  const { templateKey, channel, lang } = form
  const isDisabled = builtIn === null && own !== null && !brand.notifyTemplates.includes(templateKey)
  return consolePage(
    pageContext,
    {
      title: isNewTemplate ? 'New template' : `${kindOf(form)} in ${languageName(lang)} (${lang})`,
      section: 'brands',
      parent: { title: `Texts of ${brand.displayName}`, href: textsPath(brand) },
      actions: !isNewTemplate && (
        <>
          {own ? (
            <Badge tone="good">version {own.version}</Badge>
          ) : (
            <Badge tone="quiet">{builtIn ? 'built in' : 'not published'}</Badge>
          )}
          {draft && <Badge tone="sent">draft</Badge>}
          <FormLink
            href={testPath({ brand: brand.slug, template: templateKey, lang, ...(draft && { draft: '1' }) })}
          >
            {draft ? 'Test the draft' : 'Send a test'}
          </FormLink>
        </>
      ),
      scripts: ['preview.js'],
    },
    <>
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
                : draft
                  ? `This is the draft. otpost sends ${own ? `version ${own.version}` : builtIn ? 'the built-in text' : 'nothing'} until you publish it.`
                  : own
                    ? 'otpost sends it as it is, with a value for each placeholder.'
                    : 'This is the built-in text. Publish it to replace it with a text of the brand.'
            }
          >
            <Editor model={model} />
            {draft && (
              <ActionButton
                of={textDiscard}
                with={targetIn(brand, form)}
                kind="danger"
                confirm={`Delete the draft of ${kindOf(form)} in ${languageName(lang)}?`}
              >
                Delete the draft
              </ActionButton>
            )}
          </Card>
          {!isNewTemplate && <StoredText model={model} />}
        </div>
        <div class="stack beside">
          <Card title="Preview" hint="Of the text in this form, saved or not.">
            <div class="tryout" data-preview={templateKey}>
              <PreviewSlot>
                <DraftReading model={model.reading} />
              </PreviewSlot>
              {channel === 'EMAIL' && <MailFrame brand={brand} />}
              {channel === 'SMS' && !isNewTemplate && (
                <SampleValues of={templateKey} variables={sampleVariables(model)} />
              )}
            </div>
          </Card>
        </div>
      </div>
      {!isNewTemplate && <History model={model} />}
    </>,
  )
}

function Editor({ model }: { model: TextModel }) {
  const { brand, form, own, draft, builtIn, placeholders, isNewTemplate } = model
  const { templateKey, channel, lang } = form
  const isMail = channel === 'EMAIL'
  const target = isNewTemplate ? { mustBeNew: 'true' } : { key: templateKey, lang }
  const seenVariables = (brand.texts.variables.get(templateKey) ?? []).map(inWords).join('\n')
  return (
    <Form
      action={textsPath(brand)}
      id="text"
      previewAt={`${textsPath(brand)}/preview`}
      hidden={{
        slug: brand.slug,
        ...target,
        ...(isMail && { email: 'true' }),
        removesDraft: 'true',
        // A change of it by another operator is not overwritten.
        version: String(own?.version ?? 0),
        updatedAt: String(own?.updatedAt ?? ''),
        seenVariables,
        draftAt: String(draft?.updatedAt ?? 0),
      }}
    >
      {isNewTemplate && (
        <>
          <Field
            label="Key"
            name="key"
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
      <p class="hint" data-unsaved hidden role="status" />
      <p class="buttons">
        <Button name="draft" value="1">
          Save draft
        </Button>
        <Button kind="primary">Publish</Button>
      </p>
    </Form>
  )
}

/** For preview.js. */
export function draftFragment(model: DraftReadingModel): string {
  return renderToString(<DraftReading model={model} />)
}

function DraftReading({ model }: { model: DraftReadingModel }) {
  const { problems, sms, mail, findings } = model.preview
  if (mail) return <MailReading mail={mail} model={model} />
  if (sms) {
    return (
      <PreviewMessage preview={sms}>
        {model.cost && <p class="hint">{model.cost}</p>}
        <Differences model={model} />
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

function Differences({ model: { differences, lang } }: { model: DraftReadingModel }) {
  const changed = Object.entries(differences)
  if (changed.length === 0) return null
  return (
    <section aria-label="Difference to the published text">
      <h3>Difference to the published text</h3>
      {changed.map(([part, changes]) => (
        <Difference key={part} lang={lang} changes={changes} part={changed.length > 1 ? part : null} />
      ))}
    </section>
  )
}

/** `part`: null: there is only one. */
function Difference({
  part,
  lang,
  changes,
}: {
  part: string | null
  lang: string
  changes: readonly TextChange[]
}) {
  return (
    <p class="text difference" lang={lang} dir={part === 'html' ? 'ltr' : directionOf(lang)}>
      {part !== null && <span class="hint">{part}: </span>}
      {changes.map(({ value, added, removed }, index) => {
        const text = value.join('')
        return removed ? <del key={index}>{text}</del> : added ? <ins key={index}>{text}</ins> : text
      })}
    </p>
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

function MailReading({ mail, model }: { mail: NonNullable<DraftPreview['mail']>; model: DraftReadingModel }) {
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
      <Differences model={model} />
    </div>
  )
}

/** Null: the brand does not use the registered-template route. */
function Findings({ list }: { list: DraftPreview['findings'] }) {
  if (list === null) return null
  return (
    <section class="dlt-checks" aria-label="DLT checks">
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
function sampleVariables({ reading, placeholders }: TextModel) {
  return (reading.preview.sms?.variables ?? []).filter(({ name }) => placeholders.includes(name))
}

function StoredText({ model }: { model: TextModel }) {
  const { brand, form, own, builtIn } = model
  const { templateKey, channel, lang } = form
  const registration = registrationKeyOf(templateKey, lang === brand.lang ? undefined : lang)
  return (
    <>
      {channel === 'SMS' && (
        <Card title="Registered template" hint="For DLT in India and for providers’ own template IDs.">
          <Registration brand={brand} of={registration} />
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
          <ActionButton
            of={textRemove}
            with={targetIn(brand, form)}
            kind="danger"
            confirm={`Remove version ${own.version} of ${kindOf(form)} in ${languageName(lang)}?${builtIn ? ' The built-in text is used again.' : ''}`}
          >
            {builtIn ? 'Back to the built-in text' : 'Remove this text'}
          </ActionButton>
        </Card>
      )}
    </>
  )
}

function History({ model: { brand, form, own, builtIn, versions } }: { model: TextModel }) {
  return (
    <Card title="History">
      <Table
        caption="History"
        columns={['Version', 'Change', 'Operator', end('Time'), actions]}
        rows={versions.map(({ version, isStored, content, record }, index) => {
          const earlier = versions[index + 1]?.content ?? builtIn
          return [
            isStored ? version : `${version}, removed`,
            <div>
              {isStored &&
                Object.entries(textDifferences(earlier, content)).map(([part, changes]) => (
                  <Difference
                    key={part}
                    lang={form.lang}
                    changes={changes}
                    part={part === 'text' ? null : part}
                  />
                ))}
            </div>,
            actorName(record.actor),
            <Time at={record.at} />,
            isStored && version !== own?.version ? (
              <ActionButton
                of={textRestore}
                with={{ ...targetIn(brand, form), version: String(version) }}
                confirm={`Publish version ${version} of ${kindOf(form)} in ${languageName(form.lang)} again?`}
              >
                Restore<span class="sr-only"> version {version}</span>
              </ActionButton>
            ) : null,
          ]
        })}
        empty="No changes."
      />
    </Card>
  )
}

/** The fields of an action about the text. */
function targetIn({ slug }: BrandWithTexts, { templateKey, channel, lang }: TextTarget) {
  return { slug, key: templateKey, lang, ...(channel === 'EMAIL' && { email: true }) }
}

function kindOf({ templateKey, channel }: Pick<TextTarget, 'templateKey' | 'channel'>): string {
  return channel === 'EMAIL' ? `${templateKey} e-mail` : templateKey
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
