import { PRIORITIES } from '#gateway/bounds/priority.ts';
import { headerFields, route } from './schema-parts.ts';

export const testSchema = {
  type: 'object',
  required: ['name', 'request', 'expect'],
  properties: {
    name: {
      type: 'string',
      minLength: 1,
      maxLength: 200,
      description: 'what the test is about, at most 200 characters',
    },
    request: route('METHOD PATH, such as POST /api/items?page=2'),
    from: {
      type: 'string',
      description:
        'the address of the client, such as 192.0.2.1 (the default), or an IPv4 network whose addresses are used in turn',
    },
    headers: headerFields('header fields of the request, such as { x-api-key: fbk_1 }'),
    body: {
      type: 'string',
      maxLength: 16_384,
      description:
        'the body of the request; the Content-Type is that of JSON where it begins with {, else of a form',
    },
    times: {
      type: 'integer',
      minimum: 1,
      maximum: 10_000,
      description: 'how often the request is made, a whole number from 1 (the default) to 10000',
    },
    reply: {
      type: 'integer',
      minimum: 200,
      maximum: 599,
      description: "the status of the application's replies, such as 401; 200 unless given",
    },
    replyHeaders: headerFields("header fields of the application's replies, such as { x-tokens: 1200 }"),
    at: {
      type: 'string',
      description: 'the time, such as 2026-11-20T10:00:00Z; 1970-01-01T00:00:00Z unless given',
    },
    plan: { type: 'string', description: 'the plan that a trusted proxy names, such as gold' },
    expect: {
      type: 'object',
      properties: {
        policies: {
          type: 'array',
          items: { type: 'string' },
          maxItems: 1000,
          description: 'the names of all policies that apply',
        },
        allowed: {
          type: 'integer',
          minimum: 0,
          maximum: 10_000,
          description: 'how many of the requests pass, a whole number',
        },
        status: {
          type: 'integer',
          minimum: 100,
          maximum: 599,
          description:
            'the status of the last reply, such as 429; a request that passes gets the status of reply',
        },
        priority: {
          enum: PRIORITIES,
          description: 'the priority of the request, low, normal or high',
        },
        headers: headerFields(
          'header fields of the last reply that come from the gateway, such as { Retry-After: 60 }',
        ),
      },
      additionalProperties: false,
      minProperties: 1,
      description: 'some of policies, allowed, status, priority and headers',
    },
  },
  additionalProperties: false,
  description: 'a test has name, request and expect',
} as const;
