/** The errors in the description: one reply for each shape, which stands for all statuses that are not described. */
import { type TSchema, Type } from 'typebox';
import type { ErrorShape } from '#api/http/envelopes.ts';
import { MapOf } from '#api/values/schemas.ts';

const DetailValue = Type.Union([
  Type.String(),
  Type.Number(),
  Type.Boolean(),
  Type.Null(),
  Type.Array(Type.String()),
]);

const ErrorV1 = Type.Object(
  { code: Type.String(), message: Type.String(), details: MapOf(DetailValue) },
  { description: 'An error of v1, and of the client API of v2.' },
);
const ErrorV2 = Type.Object(
  {
    error: Type.Object({
      code: Type.Integer(),
      message: Type.String(),
      details: Type.Optional(Type.Array(Type.Object({ field: Type.String(), issue: Type.String() }))),
    }),
  },
  { description: 'An error of v2, and the 429 of v3.' },
);
const ProblemV3 = Type.Object(
  {
    title: Type.String(),
    status: Type.Integer(),
    detail: Type.String(),
    requestId: Type.String(),
    code: Type.String(),
    instance: Type.String(),
    details: Type.Optional(MapOf(DetailValue)),
    invalid_params: Type.Optional(Type.Array(Type.Object({ name: Type.String(), reason: Type.String() }))),
  },
  { description: 'An error of v3: problem details (RFC 9457).' },
);
const GatewayProblem = Type.Object(
  {
    type: Type.String(),
    title: Type.String(),
    status: Type.Integer(),
    detail: Type.String(),
    code: Type.String(),
    message: Type.String(),
    details: Type.Object({}),
    error: Type.Optional(Type.Object({ code: Type.Integer(), message: Type.String() })),
    'violated-policies': Type.Optional(Type.Array(Type.String())),
  },
  { description: 'An error of the gateway: problem details (RFC 9457) that clients of every version read.' },
);

export const errorBodies = { ErrorV1, ErrorV2, ProblemV3, GatewayProblem };

export const errorReplies: Readonly<Record<ErrorShape, ReturnType<typeof reply>>> = {
  v1: reply(ErrorV1, GatewayProblem),
  v2: reply(ErrorV2, GatewayProblem),
  v3: reply(ErrorV2, Type.Union([ProblemV3, GatewayProblem])),
};

function reply(json: TSchema, problem: TSchema) {
  return {
    description: 'Refused, or failed.',
    content: { 'application/json': { schema: json }, 'application/problem+json': { schema: problem } },
  };
}
