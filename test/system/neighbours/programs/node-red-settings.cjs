module.exports = {
  uiHost: '127.0.0.1',
  flowFile: 'flows.json',
  httpAdminRoot: '/admin',
  httpNodeRoot: '/',
  credentialSecret: false,
  disableEditor: false,
  externalModules: { palette: { allowInstall: false } },
  telemetry: { enabled: false, updateNotification: false },
};
