//! The search for credentials of a store, before its first call.

use object_store::aws::AmazonS3ConfigKey;
use object_store::azure::AzureConfigKey;
use object_store::gcp::GoogleConfigKey;

use super::url::{BucketService, CREDENTIALS, INSTANCE, StoreCredentialSource, StoreLocation};
use crate::{Error, ErrorKind, Result};

/// Checks that the environment has credentials for the store at `location`, or that the user has
/// chosen the metadata service of the machine. The check makes no call.
///
/// # Errors
/// Fails with [`ErrorKind::NoCredentials`] if there are none.
pub(super) fn check(location: &StoreLocation) -> Result<()> {
    let (is_found, advice) = match &location.service {
        BucketService::Directory(_) => return Ok(()),
        BucketService::S3(_) => (
            of_s3(location),
            "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_WEB_IDENTITY_TOKEN_FILE and \
             AWS_ROLE_ARN; the files in ~/.aws are not read",
        ),
        BucketService::Google(_) => (
            of_google(location),
            "set GOOGLE_SERVICE_ACCOUNT or GOOGLE_APPLICATION_CREDENTIALS to a file with credentials, or \
             run 'gcloud auth application-default login'",
        ),
        BucketService::Azure(_) => (
            of_azure(location),
            "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, or AZURE_CLIENT_ID, \
             AZURE_TENANT_ID and AZURE_CLIENT_SECRET",
        ),
    };
    if is_found || location.source == StoreCredentialSource::Instance {
        return Ok(());
    }
    let message = format!("the environment has no credentials for the store '{location}'");
    let machine = format!(
        "on a machine of the cloud, set {CREDENTIALS}={INSTANCE} to ask its metadata service"
    );
    Err(Error::new(ErrorKind::NoCredentials, message).with_hint(format!("{advice}\n{machine}")))
}

fn of_s3(location: &StoreLocation) -> bool {
    use AmazonS3ConfigKey as Key;
    let has = |key: Key| location.has(|known: &Key| *known == key);
    has(Key::AccessKeyId)
        || has(Key::SecretAccessKey)
        || has(Key::SkipSignature)
        || has(Key::ContainerCredentialsRelativeUri)
        || has(Key::MetadataEndpoint)
        || (has(Key::WebIdentityTokenFile) && has(Key::RoleArn))
        || (has(Key::ContainerCredentialsFullUri) && has(Key::ContainerAuthorizationTokenFile))
}

fn of_google(location: &StoreLocation) -> bool {
    use GoogleConfigKey as Key;
    let has = |key: Key| location.has(|known: &Key| *known == key);
    has(Key::ServiceAccount)
        || has(Key::ServiceAccountKey)
        || has(Key::ApplicationCredentials)
        || has(Key::BearerToken)
        || has(Key::SkipSignature)
        || location.has_default_file
}

fn of_azure(location: &StoreLocation) -> bool {
    use AzureConfigKey as Key;
    let has = |key: Key| location.has(|known: &Key| *known == key);
    let is_client = has(Key::ClientId) && has(Key::AuthorityId);
    has(Key::AccessKey)
        || has(Key::SasKey)
        || has(Key::Token)
        || has(Key::SkipSignature)
        || has(Key::UseEmulator)
        || has(Key::UseAzureCli)
        || has(Key::CredentialType)
        || has(Key::MsiEndpoint)
        || has(Key::FabricTokenServiceUrl)
        || (is_client && (has(Key::ClientSecret) || has(Key::FederatedTokenFile)))
}

#[cfg(test)]
mod tests {
    use pronto::Environment;

    use super::*;

    fn checked(url: &str, variables: &[(&str, &str)]) -> Result<()> {
        let mut environment = Environment::empty("/");
        for (name, value) in variables {
            environment.set(*name, *value);
        }
        check(&StoreLocation::parse(url, &environment)?)
    }

    #[test]
    fn credentials_are_found_without_a_call() {
        for (url, variables) in [
            (
                "s3://b",
                &[("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b")][..],
            ),
            (
                "s3://b",
                &[("AWS_WEB_IDENTITY_TOKEN_FILE", "f"), ("AWS_ROLE_ARN", "r")][..],
            ),
            ("s3://b", &[(CREDENTIALS, INSTANCE)][..]),
            ("gs://b", &[("GOOGLE_SERVICE_ACCOUNT", "f")][..]),
            ("az://b", &[("AZURE_STORAGE_ACCOUNT_KEY", "a")][..]),
            ("file:///b", &[][..]),
        ] {
            assert!(checked(url, variables).is_ok(), "{url} {variables:?}");
        }
    }

    #[test]
    fn missing_credentials_are_named() {
        for (url, variables, named) in [
            ("s3://b", &[("AWS_REGION", "x")][..], "AWS_ACCESS_KEY_ID"),
            (
                "s3://b",
                &[("AWS_ROLE_ARN", "r")][..],
                "AWS_WEB_IDENTITY_TOKEN_FILE",
            ),
            ("gs://b", &[][..], "GOOGLE_SERVICE_ACCOUNT"),
            ("az://b", &[("AZURE_CLIENT_ID", "x")][..], "AZURE_TENANT_ID"),
        ] {
            let error = checked(url, variables).expect_err(url);
            assert_eq!(error.kind(), ErrorKind::NoCredentials, "{url}");
            let hint = error.hint().unwrap_or_default();
            assert!(hint.contains(named) && hint.contains(CREDENTIALS), "{hint}");
        }
        let error = checked("s3://b", &[(CREDENTIALS, "maybe")]).expect_err("not a source");
        assert_eq!(error.kind(), ErrorKind::Options);
    }
}
