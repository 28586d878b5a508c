import t from 'tap';
import { testBothWays } from './both-ways.ts';

testBothWays(t, { GATEWAY_OWN_PARSER: '0' });
