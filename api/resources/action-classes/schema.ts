/** The fields of an action class. */
import { type Static, type TSchema, Type } from 'typebox';
import { MapOf, Nullable, OneOf, rowFields, scopeFields } from '#api/values/schemas.ts';

const TEXT_LENGTH_MAX = 2_048;
const URL_FILTERS_MAX = 100;

const Text = Type.String({ minLength: 1, maxLength: TEXT_LENGTH_MAX });

const UrlFilter = Type.Object({
  value: Text,
  rule: OneOf([
    'exactMatch',
    'contains',
    'startsWith',
    'endsWith',
    'notMatch',
    'notContains',
    'matchesRegex',
  ]),
});

const common = {
  urlFilters: Type.Array(UrlFilter, { maxItems: URL_FILTERS_MAX }),
  urlFiltersConnector: Type.Optional(OneOf(['or', 'and'])),
};

/** For each type, the event in the page that is the action, and the pages on which it counts. */
export const noCodeShapes = {
  click: Type.Object({
    type: OneOf(['click']),
    ...common,
    elementSelector: Type.Object({
      cssSelector: Type.Optional(Text),
      innerHtml: Type.Optional(Text),
    }),
  }),
  pageView: Type.Object({ type: OneOf(['pageView']), ...common }),
  exitIntent: Type.Object({ type: OneOf(['exitIntent']), ...common }),
  fiftyPercentScroll: Type.Object({ type: OneOf(['fiftyPercentScroll']), ...common }),
  pageDwell: Type.Object({
    type: OneOf(['pageDwell']),
    ...common,
    timeInSeconds: Type.Integer({ minimum: 1, maximum: 3_600 }),
  }),
} satisfies Readonly<Record<string, TSchema>>;

export type NoCodeType = keyof typeof noCodeShapes;
export type NoCodeConfig = Static<(typeof noCodeShapes)[NoCodeType]>;

const Name = Type.String({ minLength: 1, maxLength: 255 });

/** `noCodeConfig` is checked separately against the shape of its type, so that errors are about that type only. */
export const ActionClassBody = Type.Object({
  ...scopeFields,
  name: Name,
  description: Type.Optional(Nullable(Type.String({ maxLength: TEXT_LENGTH_MAX }))),
  type: OneOf(['code', 'noCode']),
  key: Type.Optional(Nullable(Name)),
  noCodeConfig: Type.Optional(Nullable(MapOf(Type.Unknown()))),
});
export type ActionClassBody = Static<typeof ActionClassBody>;

export const ActionClassReply = Type.Object({
  ...rowFields,
  name: Type.String(),
  description: Nullable(Type.String()),
  type: Type.String(),
  key: Nullable(Type.String()),
  noCodeConfig: Type.Unknown(),
});
